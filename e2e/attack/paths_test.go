package attack

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const metadataPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n"

// auditArgs have a server record all requests at the level Metadata, and name the log.
func auditArgs(t *testing.T) (args []string, log string) {
	t.Helper()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(metadataPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--audit-policy-file", policy, "--audit-log-path", log}, log
}

// TestPaths: the path that is authorized is the path that is served, however it is spelled. A user who may
// read one namespace's ConfigMaps, and some paths, sends thousands of spellings of others, over both
// protocols, without a library that would normalize them. TestAccess does the same with spellings that
// libraries send.
func TestPaths(t *testing.T) {
	t.Parallel()
	args, log := auditArgs(t)
	a := open(t, args...)
	for _, ns := range []string{"mallory", "other"} {
		a.admin(t, "POST", "/api/v1/namespaces/"+ns+"/configmaps", `{"metadata":{"name":"c"},"data":{"k":"a text of `+ns+`"}}`)
		a.admin(t, "POST", "/api/v1/namespaces/"+ns+"/secrets", `{"metadata":{"name":"s"},"stringData":{"k":"unspeakable"}}`)
	}
	a.admin(t, "POST", "/api/v1/namespaces", `{"metadata":{"name":"reader"}}`)
	reader := a.account(t, "reader", "reader")
	a.grant(t, "reader", "mallory", `[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}]`)
	a.grant(t, "reader", "", `[{"nonResourceURLs":["/healthz/*","/x/*"],"verbs":["get"]}]`)
	paths := spellings(3000)
	// Texts of answers that the reader may not get.
	for _, answer := range append(a.overHTTP1(t, reader, paths), a.overHTTP2(t, reader, paths)...) {
		for _, text := range []string{"unspeakable", "dW5zcGVha2FibGU=", "a text of other", "go_goroutines", "goroutine profile", "system:masters"} {
			if strings.Contains(answer.body, text) {
				t.Errorf("%q: %d %.300s", answer.path, answer.code, answer.body)
			}
		}
		if answer.code >= 500 {
			t.Errorf("%q: %d %.300s", answer.path, answer.code, answer.body)
		}
	}
	// The audit log has what the server authorized.
	allowed, refused := 0, 0
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var e struct {
			RequestURI     string
			User           struct{ Username string }
			ObjectRef      *struct{ Resource, Namespace, Subresource string }
			ResponseStatus struct{ Code int }
			Annotations    map[string]string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.User.Username != "system:serviceaccount:reader:reader" {
			continue
		}
		if e.Annotations["authorization.k8s.io/decision"] != "allow" {
			refused++
			if e.ResponseStatus.Code/100 == 2 {
				t.Errorf("%s was refused, and answered with %d", e.RequestURI, e.ResponseStatus.Code)
			}
			continue
		}
		allowed++
		if e.ObjectRef != nil && (e.ObjectRef.Resource != "configmaps" || e.ObjectRef.Namespace != "mallory") {
			t.Errorf("%s was allowed: %+v", e.RequestURI, *e.ObjectRef)
		}
	}
	t.Logf("%d spellings were allowed, %d refused", allowed, refused)
	if allowed < 20 || refused < 1000 {
		t.Error("want at least 20 spellings allowed and 1000 refused")
	}
}

// spellings are ways to write paths that the reader may not get, so that they look like those that it may. They are the same
// each time.
func spellings(n int) []string {
	random := rand.New(rand.NewSource(1))
	one := func(list ...string) string { return list[random.Intn(len(list))] }
	targets := [][]string{
		{"api", "v1", "namespaces", "other", "secrets", "s"}, {"api", "v1", "namespaces", "mallory", "secrets", "s"}, {"api", "v1", "namespaces", "other", "configmaps", "c"},
		{"api", "v1", "secrets"}, {"api", "v1", "configmaps"}, {"metrics"}, {"debug", "pprof", "goroutine"}, {"apis", "rbac.authorization.k8s.io", "v1", "clusterrolebindings"},
		{"api", "v1", "namespaces", "mallory", "configmaps", "c"},
	}
	prefixes := []string{"", "", "", "/healthz", "/healthz/x", "/x", "/api/v1/namespaces/mallory/configmaps", "/api/v1/namespaces/mallory/configmaps/c", "/api/v1/watch", "/api/v1/proxy"}
	list := []string{"/api/v1/namespaces/mallory/configmaps/c", "/healthz/ping", "/api/v1/namespaces/mallory/configmaps"}
	for len(list) < n {
		p := one(prefixes...)
		if p != "" {
			for range 1 + random.Intn(7) {
				p += one("/..", "/%2e%2e", "/.%2e", "%2f..", "/..;", "\\..", "/%252e%252e", "%5c..", "/../", "/./..")
			}
		}
		for _, segment := range targets[random.Intn(len(targets))] {
			p += one("/", "/", "/", "/", "/", "//", "/./", "/x/../", "%2f", "%2F", "%252f", "\\", "/%2e/", ";a=b/", "/;/", "/%20", "/\xff", "/%00", "%0a/")
			switch random.Intn(12) {
			case 0:
				segment = strings.ToUpper(segment)
			case 1:
				segment = fmt.Sprintf("%%%02x%s", segment[0], segment[1:])
			case 2:
				segment = fmt.Sprintf("%%25%02x%s", segment[0], segment[1:])
			case 3:
				segment += one(";x", "%00", "%20", ".", "%2f", "#", "%23", "%3f", "\t", "\u212a")
			}
			p += segment
		}
		list = append(list, p+one("", "", "", "/", "//", "?watch=0", "?namespace=mallory", "#/api/v1/namespaces/mallory/configmaps", ";/api/v1/namespaces/mallory/configmaps"))
	}
	return list
}

type spelled struct {
	path, body string
	code       int
}

// overHTTP1 gets paths one after the other, with connections as long as the server keeps them.
func (a *arena) overHTTP1(t *testing.T, token string, paths []string) (list []spelled) {
	t.Helper()
	var conn io.ReadWriteCloser
	var in *bufio.Reader
	for i, path := range paths {
		if conn == nil {
			conn = a.Dial(t, "http/1.1")
			in = bufio.NewReader(conn)
		}
		host := ""
		if i%10 == 0 {
			host = "https://x" // in the absolute form
		}
		if _, err := fmt.Fprintf(conn, "GET %s%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", host, path, token); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(in, &http.Request{Method: "GET"})
		if err != nil {
			t.Fatalf("%q: %v", path, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("%q: %v", path, err)
		}
		list = append(list, spelled{"HTTP/1.1 " + path, string(body), resp.StatusCode})
		if resp.Close {
			conn.Close()
			conn = nil
		}
	}
	return list
}

// overHTTP2 gets paths by one connection.
func (a *arena) overHTTP2(t *testing.T, token string, paths []string) (list []spelled) {
	t.Helper()
	f := a.DialFrames(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := f.WriteWindowUpdate(0, 1<<30); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		id := f.Next
		if err := f.Request(true, "GET", path, "authorization", "Bearer "+token); err != nil {
			t.Fatal(err)
		}
		one := spelled{path: "HTTP/2 " + path}
		for done := false; !done; {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatalf("%q: %v", path, err)
			}
			if frame.Header().StreamID != id {
				continue
			}
			switch frame := frame.(type) {
			case *http2.MetaHeadersFrame:
				if _, err := fmt.Sscan(frame.PseudoValue("status"), &one.code); err != nil {
					t.Fatal(err)
				}
				done = frame.StreamEnded()
			case *http2.DataFrame:
				one.body += string(frame.Data())
				done = frame.StreamEnded()
			case *http2.RSTStreamFrame:
				done = true
			}
		}
		list = append(list, one)
	}
	return list
}
