package e2e

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestHostileRequests sends what costs much if it is believed: each must be answered
// with little work, with a refusal that says why, and the server goes on.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	do := func(method, path, contentType, body string, headers ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
		r.Header.Set("Content-Type", contentType)
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Add(headers[i], headers[i+1])
		}
		resp, err := client.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	const configMaps = "/api/v1/namespaces/default/configmaps"
	if code, body := do("POST", configMaps, "application/json", `{"metadata":{"name":"c"},"data":{"a":"`+strings.Repeat("x", 1000)+`"}}`); code != 201 {
		t.Fatal(code, body)
	}
	if code, body := do("POST", "/apis/apps/v1/namespaces/default/deployments", "application/json", `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`); code != 201 {
		t.Fatal(code, body)
	}
	deep := func(open, shut string, n int) string { return strings.Repeat(open, n) + strings.Repeat(shut, n) }
	aliases := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		aliases += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	bomb := "["
	for i := range 60 {
		bomb += fmt.Sprintf(`{"op":"copy","from":"/data","path":"/data/k%d"},`, i)
	}
	bomb = strings.TrimSuffix(bomb, ",") + "]"
	many := "[" + strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/kind","value":"ConfigMap"},`, 10001), ",") + "]"
	for _, c := range []struct {
		name, method, path, contentType, body string
		codes                                 string // those that are right
		headers                               []string
	}{
		{"deep JSON", "POST", configMaps, "application/json", `{"metadata":{"name":"x"},"x":` + deep("[", "]", 200000) + "}", "400", nil},
		{"deep objects", "POST", configMaps, "application/json", strings.Repeat(`{"a":`, 100000), "400", nil},
		{"deep YAML", "POST", configMaps, "application/yaml", "a: " + deep("[", "]", 20000), "400", nil},
		{"YAML aliases", "POST", configMaps, "application/yaml", aliases, "400", nil},
		{"deep merge patch", "PATCH", configMaps + "/c", "application/merge-patch+json", `{"x":` + deep(`{"a":`, "}", 50000) + "}", "400 422", nil},
		{"deep strategic patch", "PATCH", "/apis/apps/v1/namespaces/default/deployments/d", "application/strategic-merge-patch+json", strings.Repeat(`{"spec":`, 50000) + "1" + strings.Repeat("}", 50000), "400 422 500", nil},
		{"deep apply", "PATCH", configMaps + "/c?fieldManager=m", "application/apply-patch+yaml", `{"apiVersion":"v1","kind":"ConfigMap","x":` + deep("[", "]", 50000) + "}", "400 500", nil},
		{"copy bomb", "PATCH", configMaps + "/c", "application/json-patch+json", bomb, "413 422 400", nil},
		{"many operations", "PATCH", configMaps + "/c", "application/json-patch+json", many, "413", nil},
		{"large body", "POST", configMaps, "application/json", `{"metadata":{"name":"x"},"data":{"a":"` + strings.Repeat("x", 4<<20) + `"}}`, "413", nil},
		{"large quantity", "POST", "/api/v1/namespaces/default/limitranges", "application/json", `{"metadata":{"name":"q"},"spec":{"limits":[{"type":"Pod","max":{"cpu":"1e` + strings.Repeat("9", 1000) + `"}}]}}`, "400 422", nil},
		{"long quantity", "POST", "/api/v1/namespaces/default/limitranges", "application/json", `{"metadata":{"name":"q2"},"spec":{"limits":[{"type":"Pod","max":{"cpu":"` + strings.Repeat("9", 1<<20) + `"}}]}}`, "201 400 422", nil},
		{"long label selector", "GET", configMaps + "?labelSelector=" + strings.Repeat("a,", 100000) + "a", "", "", "200 400 414 431", nil},
		{"long field selector", "GET", configMaps + "?fieldSelector=" + strings.Repeat("metadata.name!=a,", 20000) + "metadata.name!=a", "", "", "200 400 414 431", nil},
		{"long path", "GET", "/" + strings.Repeat("a/", 200000), "", "", "404 431 414", nil},
		{"many parameters", "GET", configMaps + "?" + strings.Repeat("a&", 200000) + "limit=1", "", "", "200 400 414 431", nil},
		{"long continue token", "GET", configMaps + "?continue=" + strings.Repeat("A", 500000), "", "", "400 414 431", nil},
		{"long name", "GET", configMaps + "/" + strings.Repeat("a", 500000), "", "", "404 400 414 431", nil},
		{"long field manager", "POST", configMaps + "?fieldManager=" + strings.Repeat("a", 100000), "application/json", `{"metadata":{"name":"x"}}`, "400 422", nil},
		{"many accepted types", "GET", configMaps, "", "", "200 406", []string{"Accept", strings.Repeat("a/b;q=0.1,", 50000) + "application/json"}},
		{"many impersonated groups", "GET", configMaps, "", "", "400 431", append([]string{"Impersonate-User", "u"}, strings.Split(strings.TrimSuffix(strings.Repeat("Impersonate-Group,g,", 3000), ","), ",")...)},
	} {
		before := processorTime(t, s)
		code, body := do(c.method, c.path, c.contentType, c.body, c.headers...)
		took := processorTime(t, s) - before
		// Some end with a protocol error before an answer.
		if code != 0 && !strings.Contains(" "+c.codes+" ", fmt.Sprintf(" %d ", code)) {
			t.Errorf("%s: %d, want %s: %.300s", c.name, code, c.codes, body)
		}
		if code == 0 && !strings.Contains(c.codes, "431") {
			t.Errorf("%s: %s", c.name, body)
		}
		if took > 5*time.Second {
			t.Errorf("%s: took %s", c.name, took)
		}
		t.Logf("%s: %d in %s: %.100s", c.name, code, took, strings.ReplaceAll(body, "\n", " "))
	}
	if code, body := do("GET", "/readyz", "", ""); code != 200 {
		t.Errorf("afterwards: %d %s", code, body)
	}
	rapidReset(t, s)
	if code, body := do("GET", configMaps+"/c", "", ""); code != 200 {
		t.Errorf("afterwards: %d %s", code, body)
	}
}

// rapidReset opens and cancels requests without end: the server ends the connection,
// or keeps pace with it; in no case does it queue unread answers.
func rapidReset(t *testing.T, s *harness.Server) {
	pool, err := s.CA()
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.Dial("tcp", strings.TrimPrefix(s.URL, "https://"), &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, c) }() // ends with the connection
	if _, err := c.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(c, nil)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	before := resident(t, s)
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	const requests = 200000
	for i := range requests {
		head.Reset()
		for _, h := range []hpack.HeaderField{
			{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "x"}, {Name: ":path", Value: "/api/v1/configmaps?watch=1"},
		} {
			if err := enc.WriteField(h); err != nil {
				t.Fatal(err)
			}
		}
		id := uint32(2*i + 1)
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true})
		if err == nil {
			err = f.WriteRSTStream(id, http2.ErrCodeCancel)
		}
		if err != nil {
			t.Logf("the connection was ended after %d requests", i)
			break
		}
	}
	if grown := resident(t, s) - before; grown > 128<<20 {
		t.Errorf("a connection of cancelled requests took %d MB", grown>>20)
	}
}

// processorTime is what the server's process has used of processors, in steps of 10 ms.
func processorTime(t *testing.T, s *harness.Server) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	// pid (name) state ...; a name may hold anything. The 12th and 13th behind it are of
	// the process itself and of what the system did for it.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	var ticks time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}

// resident is how many bytes of memory the server's process has.
func resident(t *testing.T, s *harness.Server) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(data), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
