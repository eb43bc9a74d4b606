package attack

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/e2e/harness"
)

const reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

// TestSmuggling: an ambiguous request, which another parser could read as two or as that of another user, is
// one request of its sender, or is refused.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	a := open(t)
	t.Run("lengths", func(t *testing.T) { smuggledLengths(t, a) })
	t.Run("lines", func(t *testing.T) { oddLines(t, a) })
	t.Run("HTTP/2", func(t *testing.T) { smuggledFrames(t, a) })
	t.Run("identities", func(t *testing.T) { smuggledIdentities(t, a) })
}

// exchange sends a text as it is, and returns the codes of all answers, until the connection ends or the answers are as many
// as most.
func (a *arena) exchange(t *testing.T, text string, most int) (codes []int, bodies string) {
	t.Helper()
	conn := a.Dial(t, "http/1.1")
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if most > 1 { // else the server could take the request for given up
		_ = conn.CloseWrite() // the server may have closed the connection
	}
	for in := bufio.NewReader(conn); len(codes) < most; {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection stays open after %.200q", text)
			}
			break
		}
		body, _ := io.ReadAll(resp.Body) // some end in the middle
		codes, bodies = append(codes, resp.StatusCode), bodies+string(body)
	}
	return codes, bodies
}

// smuggledLengths: a request with two lengths, or an unusual one, is refused, and nothing behind it is answered.
func smuggledLengths(t *testing.T, a *arena) {
	head := "POST " + mine + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + a.mallory + "\r\nContent-Type: application/json\r\n"
	inner := `{"metadata":{"name":"smuggled"}}`
	second := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", mine, a.mallory, len(inner), inner)
	for name, headers := range map[string]string{
		"a length and chunks":      "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"chunks and a length":      "Transfer-Encoding: chunked\r\nContent-Length: 500\r\n\r\n0\r\n\r\n",
		"two lengths":              "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"lengths in a list":        "Content-Length: 2, 3\r\n\r\n{}",
		"a length with a sign":     "Content-Length: +2\r\n\r\n{}",
		"a length below zero":      "Content-Length: -2\r\n\r\n{}",
		"a hexadecimal length":     "Content-Length: 0x2\r\n\r\n{}",
		"a length of words":        "Content-Length: 2 2\r\n\r\n{}",
		"no length":                "Content-Length: \r\n\r\n{}",
		"a length beyond numbers":  "Content-Length: 99999999999999999999999\r\n\r\n{}",
		"a blank behind the name":  "Content-Length : 2\r\n\r\n{}",
		"a blank behind encoding":  "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
		"another encoding":         "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"an encoding like it":      "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"two encodings":            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
		"chunked twice":            "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
		"a vertical tab":           "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
		"a chunk without a number": "Transfer-Encoding: chunked\r\n\r\n\r\n{}\r\n0\r\n\r\n",
		"a chunk of 0x2":           "Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
		"a chunk of 2^64":          "Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{}\r\n0\r\n\r\n",
		"a longer chunk":           "Transfer-Encoding: chunked\r\n\r\n2\r\n{}}\r\n0\r\n\r\n",
		"a line feed in a chunk":   "Transfer-Encoding: chunked\r\n\r\n2;a\nb\r\n{}\r\n0\r\n\r\n",
	} {
		codes, bodies := a.exchange(t, head+headers+second, 3)
		if len(codes) != 1 || codes[0] < 400 {
			t.Errorf("%s: answers %v: %.300s", name, codes, bodies)
		}
	}
	if code, answer := a.send(t, call{method: "GET", path: mine + "/smuggled", token: a.mallory}); code != 404 {
		t.Errorf("a request behind a refused one was done: %d %s", code, answer)
	}
}

// oddLines: malformed lines, and invalid names and values of headers, are refused.
func oddLines(t *testing.T, a *arena) {
	const rest = "\r\n\r\nGET /version HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, text := range map[string]string{
		"no host":                     "GET /version HTTP/1.1\r\nA: b" + rest,
		"two hosts":                   "GET /version HTTP/1.1\r\nHost: x\r\nHost: y" + rest,
		"a host with a blank":         "GET /version HTTP/1.1\r\nHost: x y" + rest,
		"a carriage return":           "GET /version HTTP/1.1\r\nHost: x\r\nA: b\rX-Remote-User: admin" + rest,
		"a zero byte":                 "GET /version HTTP/1.1\r\nHost: x\r\nA: b\x00c" + rest,
		"a name with a blank":         "GET /version HTTP/1.1\r\nHost: x\r\nX-Remote-User X: admin" + rest,
		"a blank in front of a name":  "GET /version HTTP/1.1\r\n X-Remote-User: admin\r\nHost: x" + rest,
		"no name":                     "GET /version HTTP/1.1\r\nHost: x\r\n: b" + rest,
		"no colon":                    "GET /version HTTP/1.1\r\nHost: x\r\nbare" + rest,
		"a name beyond ASCII":         "GET /version HTTP/1.1\r\nHost: x\r\nX-Rem\u00f6te: b" + rest,
		"no version":                  "GET /version" + rest,
		"another version":             "GET /version HTTP/2.0\r\nHost: x" + rest,
		"four words":                  "GET /version HTTP/1.1 HTTP/1.1\r\nHost: x" + rest,
		"a method that is none":       "G(T /version HTTP/1.1\r\nHost: x" + rest,
		"a target that is none":       "GET version HTTP/1.1\r\nHost: x" + rest,
		"a control byte in a target":  "GET /ver\x01sion HTTP/1.1\r\nHost: x" + rest,
		"a broken escape in a target": "GET /version%zz HTTP/1.1\r\nHost: x" + rest,
	} {
		if codes, bodies := a.exchange(t, text, 3); len(codes) > 1 || len(codes) == 1 && codes[0] < 400 {
			t.Errorf("%s: answers %v: %.300s", name, codes, bodies)
		}
	}
}

// smuggledFrames: HTTP/2 has no place for what would be two requests in HTTP/1.1.
func smuggledFrames(t *testing.T, a *arena) {
	good := func() []string {
		return []string{":method", "GET", ":scheme", "https", ":authority", "x", ":path", "/version", "authorization", "Bearer " + a.mallory}
	}
	with := func(name, value string) []string {
		list := good()
		for i := 0; i < len(list); i += 2 {
			if list[i] == name {
				list[i+1] = value
				return list
			}
		}
		return append(list, name, value)
	}
	const injected = "/version HTTP/1.1\r\nX-Remote-User: admin"
	for name, fields := range map[string][]string{
		"an encoding": with("transfer-encoding", "chunked"), "a connection": with("connection", "x-remote-user"), "an upgrade": with("upgrade", "h2c"),
		"keep-alive": with("keep-alive", "5"), "proxy-connection": with("proxy-connection", "close"), "te": with("te", "gzip"),
		"capitals": with("X-Remote-User", "admin"), "a colon in a name": with("a:b", "c"), "a blank in a name": with("x-remote-user ", "admin"),
		"lines in a value": with("a", "b\r\nx-remote-user: admin"), "a zero byte": with("a", "b\x00"), "lines in a name": with("a\r\nb", "c"),
		"lines in a path": with(":path", injected), "lines in a method": with(":method", "GET "+injected), "lines in a host": with(":authority", "x\r\nx-remote-user: admin"),
		"a user in a host": with(":authority", "admin@x"), "no path": with(":path", ""), "a path that is none": with(":path", "version"), "another scheme": with(":scheme", "file"),
		"two methods": append([]string{":method", "DELETE"}, good()...), "two paths": append([]string{":path", "/metrics"}, good()...),
		"a pseudo header behind others": append(good(), ":path", "/metrics"), "an unknown pseudo header": append([]string{":user", "admin"}, good()...),
		"a length": with("content-length", "5"), "two lengths": append(with("content-length", "0"), "content-length", "0"), "a length with a sign": with("content-length", "+0"),
	} {
		f := a.DialFrames(t)
		f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.Block(fields...), EndStream: true, EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
		frame, err := until(f, func(f http2.Frame) bool { return f.Header().StreamID == 1 })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r, is := frame.(*http2.RSTStreamFrame); !is || r.ErrCode != http2.ErrCodeProtocol {
			t.Errorf("%s: %v", name, frame)
		}
		f.Conn.Close()
	}
}

// smuggledIdentities: the user of a request is that of its credentials, whatever other headers contain, however they are spelled,
// and wherever they are.
func smuggledIdentities(t *testing.T, a *arena) {
	const mallory = `"username":"system:serviceaccount:mallory:mallory"`
	body := `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	token := "Authorization: Bearer " + a.mallory + "\r\n"
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
	chunks := func(trailers string) string {
		return fmt.Sprintf("Transfer-Encoding: chunked\r\nTrailer: X-Remote-User, Impersonate-User, Authorization\r\n\r\n%x\r\n%s\r\n0\r\n%s\r\n", len(body), body, trailers)
	}
	proxied := "X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n"
	for name, c := range map[string]struct {
		text string
		code int
	}{
		"plain":                      {token + length, 201},
		"a proxy's headers":          {token + proxied + length, 201},
		"in lower case":              {token + strings.ToLower(proxied) + length, 201},
		"with underscores":           {token + "X_Remote_User: admin\r\nImpersonate_User: admin\r\n" + length, 201},
		"over two lines":             {token + "X-Remote-User:\r\n admin\r\nX-Remote-Group:\r\n\tsystem:masters\r\n" + length, 201},
		"an identity over two lines": {token + "Impersonate-User:\r\n admin\r\n" + length, 403},
		"in trailers":                {token + chunks("X-Remote-User: admin\r\nImpersonate-User: admin\r\nAuthorization: Bearer "+harness.AdminToken+"\r\n"), 201},
		"listed as of a hop":         {token + proxied + "Connection: Authorization, X-Remote-User, close\r\n" + length, 201},
		"a hop's impersonation":      {token + "Impersonate-User: admin\r\nConnection: Impersonate-User\r\n" + length, 403},
		"a certificate in a header":  {token + "X-Forwarded-Client-Cert: Subject=\"CN=admin,O=system:masters\"\r\nX-Ssl-Client-Verify: SUCCESS\r\nX-Ssl-Client-S-Dn: CN=admin\r\n" + length, 201},
		"a second token":             {token + "Authorization: Bearer " + harness.AdminToken + "\r\n" + length, 201},
		"another group":              {token + "Impersonate-Group: system:masters\r\n" + length, 400},
		"a group of oneself":         {token + "Impersonate-User: system:serviceaccount:mallory:mallory\r\nImpersonate-Group: system:masters\r\n" + length, 403},
		"an extra":                   {token + "Impersonate-Extra-%2e: x\r\n" + length, 400},
		"proxy credentials":          {"Proxy-Authorization: Bearer " + harness.AdminToken + "\r\n" + length, 403},
		"a cookie":                   {"Cookie: Authorization=Bearer " + harness.AdminToken + "\r\n" + length, 403},
		"no credentials":             {proxied + length, 403},
		"a method in a header":       {token + "X-HTTP-Method-Override: DELETE\r\n" + length, 201},
	} {
		codes, bodies := a.exchange(t, "POST "+reviews+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+c.text, 1)
		refused := c.code == 400 && len(codes) == 1 && codes[0] == 500 // in release 1.32
		if len(codes) != 1 || codes[0] != c.code && !refused || (c.code == 201) != strings.Contains(bodies, mallory) {
			t.Errorf("%s: answers %v, want %d: %.500s", name, codes, c.code, bodies)
		}
	}
}
