package server_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/servertest"
)

// dialRaw sends a request over HTTP/1.1 that no client library would send.
func dialRaw(t *testing.T, s *servertest.Server, text string) (*http.Response, string) {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL, "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	_, _ = io.CopyN(&body, resp.Body, 1<<20) // some end in the middle
	return resp, body.String()
}

// TestSmuggledIdentity: whatever form a client gives to identity headers, and wherever it puts
// them, the other server learns the authenticated user, and nothing else.
func TestSmuggledIdentity(t *testing.T) {
	trailers := make(chan http.Header, 1)
	b := startBehind(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		trailers <- r.Trailer
		if r.Header.Get("Upgrade") != "" {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	s := servertest.Start(t, withPeople)
	b.register(t, s)
	const get = "GET /apis/g.example/v1/things/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ann\r\n"
	for name, c := range map[string]struct {
		text string
		code int // 0: 200
	}{
		"lower case":             {text: get + "x-remote-user: admin\r\nX-REMOTE-GROUP: system:masters\r\nx-Remote-EXTRA-a: b\r\n\r\n"},
		"underscores":            {text: get + "X_Remote_User: admin\r\nx_remote-group: system:masters\r\nX-Remote_Uid: 0\r\nImpersonate_User: admin\r\n\r\n"},
		"twice":                  {text: get + "X-Remote-User: admin\r\nX-Remote-User: root\r\n\r\n"},
		"hop by hop":             {text: get + "Connection: X-Remote-User, X-Remote-Group, X-Forwarded-For, close\r\nX-Remote-User: admin\r\n\r\n"},
		"hop by hop, upgraded":   {text: get + "Connection: Upgrade, X-Remote-User\r\nUpgrade: echo\r\nX-Remote-Group: system:masters\r\n\r\n", code: http.StatusForbidden},
		"upgraded to HTTP/2":     {text: get + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"},
		"proxy headers":          {text: get + "Proxy-Authorization: Basic x\r\nProxy-Connection: X-Remote-User\r\nX-Remote-User: admin\r\n\r\n"},
		"a blank before a colon": {text: get + "X-Remote-User : admin\r\n\r\n", code: http.StatusBadRequest},
		"a folded line":          {text: get + "X-Other: a\r\n X-Remote-User: admin\r\n\r\n"},
		"trailers": {text: strings.Replace(get, "GET", "PUT", 1) + "Transfer-Encoding: chunked\r\nTrailer: X-Remote-User, X-Remote-Group\r\n\r\n" +
			"1\r\na\r\n0\r\nX-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n\r\n"},
		"both lengths": {text: strings.Replace(get, "GET", "PUT", 1) + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"0\r\n\r\nGET /apis/g.example/v1/things/y HTTP/1.1\r\nX-Remote-User: admin\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			before := b.asked.Load()
			resp, body := dialRaw(t, s, c.text)
			if want := max(c.code, http.StatusOK); resp.StatusCode != want {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			if c.code == http.StatusBadRequest {
				if b.asked.Load() != before {
					t.Error("it was passed on")
				}
				return
			}
			if got := <-trailers; len(got) > 0 {
				t.Errorf("trailers: %v", got)
			}
			if n := b.asked.Load() - before; n != 1 {
				t.Errorf("%d requests were passed on", n)
			}
			named := 0
			for header, values := range b.seen.Load().Header {
				plain := strings.ReplaceAll(strings.ToLower(header), "_", "-")
				switch got := strings.Join(values, "|"); {
				case plain == "x-remote-user" && got == "ann", plain == "x-remote-group" && got == "system:authenticated":
					named++
				case strings.HasPrefix(plain, "x-remote-"), strings.HasPrefix(plain, "impersonate-"), strings.HasPrefix(plain, "proxy-"), plain == "authorization",
					strings.Contains(header+got, "admin") && plain != "x-other", plain == "connection" && !strings.EqualFold(got, "upgrade"):
					t.Errorf("%s: %s", header, got)
				}
			}
			if named != 2 {
				t.Errorf("the user is not named: %v", b.seen.Load().Header)
			}
		})
	}
}

// TestLyingServer: invalid answers of an aggregated server cost no more than the bounds, and
// reveal nothing about this one to clients.
func TestLyingServer(t *testing.T) {
	flooded := make(chan struct{}, 1)
	b := startBehind(t, func(w http.ResponseWriter, r *http.Request) {
		_, what, _ := strings.Cut(r.URL.Path, "/things/")
		switch what {
		case "flood": // watches have no deadline
			for r.Context().Err() == nil {
				w.WriteHeader(http.StatusProcessing)
			}
			flooded <- struct{}{}
		case "bomb":
			for i := range 2000 {
				w.Header().Set(fmt.Sprint("X-Bomb-", i), strings.Repeat("x", 100))
			}
		case "claims":
			for _, name := range []string{"Alt-Svc", "Strict-Transport-Security", "Clear-Site-Data", "Refresh", "Audit-Id"} {
				w.Header().Set(name, "theirs")
			}
			w.Header().Set("X-Kept", "yes")
		case "switched":
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "echo")
			w.WriteHeader(http.StatusSwitchingProtocols)
		case "nowhere":
			w.WriteHeader(http.StatusFound)
		}
	})
	s := servertest.Start(t, withPeople)
	b.register(t, s)
	ask := func(what string) (*http.Response, string) {
		t.Helper()
		if !strings.Contains(what, "\r\n") {
			what += " HTTP/1.1\r\nConnection: close"
		}
		return dialRaw(t, s, "GET /apis/g.example/v1/things/"+what+"\r\nHost: x\r\nAuthorization: Bearer ann\r\n\r\n")
	}
	for what, code := range map[string]int{"flood": 503, "flood?watch=1": 503, "bomb": 503, "claims": 200, "nowhere": 302,
		"switched": 200, "switched HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: other": 503, // not requested, like the next one
	} {
		resp, body := ask(what)
		if resp.StatusCode != code {
			t.Errorf("%s: %d %s", what, resp.StatusCode, body)
		}
		if strings.HasPrefix(what, "flood") {
			<-flooded // the server was asked to stop
		}
		for name, values := range resp.Header {
			if strings.HasPrefix(name, "X-Bomb") || strings.Contains(strings.Join(values, ""), "theirs") {
				t.Errorf("%s: %s: %q", what, name, values)
			}
		}
		if what == "claims" && resp.Header.Get("X-Kept") != "yes" {
			t.Error("other headers are lost")
		}
		if (what == "claims" || what == "nowhere") && !slices.Contains(resp.Header.Values("Via"), aggregator.Via) {
			t.Errorf("%s: no header shows that it is of another server: %q", what, resp.Header)
		}
	}
	if w := s.Do("GET", "/api/v1/namespaces/default", ""); w.Code != http.StatusOK || w.Header().Get("Via") != "" {
		t.Errorf("afterwards: %d %q", w.Code, w.Header())
	}
}
