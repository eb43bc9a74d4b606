package attack

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/rowlock/rowlock/e2e/harness"
)

// strangers are attacks without credentials: their cost is bounded for each connection, and ends soon.
var strangers = []attack{
	{"requests after the connection was ended", floodAfterEnd}, {"requests and nothing is read", floodUnread},
	{"a body that never comes", bodyNeverComes}, {"refused over HTTP/2", refusedOnce},
	{"closed windows", closedWindows}, {"resets", rapidResets},
}

// discard reads everything, and signals the end of the connection.
func discard(r *harness.Frames) <-chan error {
	done := make(chan error, 1)
	go func() { // ends with the connection
		_, err := io.Copy(io.Discard, r.Conn)
		done <- err
	}()
	return done
}

// floodAfterEnd: the first request is refused, and the connection gets GOAWAY. A
// second that was begun before keeps it open; none of those that follow is served.
func floodAfterEnd(t *testing.T, s *arena) {
	r := s.DialFrames(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	done := discard(r)
	for i := range 3_000_000 {
		if err := r.Request(true, "GET", "/api/v1/secrets"); err != nil {
			t.Logf("ended after %d requests", i)
			return
		}
	}
	if err := <-done; errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("three million requests were taken, and the connection stays")
	}
}

// floodUnread: the client reads nothing, not even GOAWAY.
func floodUnread(t *testing.T, s *arena) {
	r := s.DialFrames(t)
	for i := range 3_000_000 {
		if err := r.Request(true, "GET", "/api/v1/secrets"); err != nil {
			t.Logf("ended after %d requests", i)
			return
		}
	}
	t.Error("three million requests were taken")
}

// bodyNeverComes: a refusal does not wait for a body that nothing reads.
func bodyNeverComes(t *testing.T, s *arena) {
	for _, path := range []string{"/api/v1/namespaces/default/configmaps", "/version"} {
		c := s.Dial(t, "http/1.1")
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(c)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if resp.StatusCode != 401 && resp.StatusCode != 403 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if _, err := in.ReadByte(); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection stays", path)
		}
	}
}

// refusedOnce: a refused HTTP/2 client gets a GOAWAY.
func refusedOnce(t *testing.T, s *arena) {
	for _, headers := range [][]string{{"authorization", "Bearer wrong"}, nil} {
		r := s.DialFrames(t)
		if err := r.Request(true, "GET", "/api/v1/secrets", headers...); err != nil {
			t.Fatal(err)
		}
		away := false
		for {
			frame, err := r.ReadFrame()
			if err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the connection stays")
				}
				break
			}
			_, ok := frame.(*http2.GoAwayFrame)
			away = away || ok
		}
		if !away {
			t.Errorf("%q: no GOAWAY", headers)
		}
	}
}

// closedWindows: answers that a client has no room for are given up, and the connection,
// which got GOAWAY, with them.
func closedWindows(t *testing.T, s *arena) {
	var ended []<-chan error
	for range 3 {
		r := s.DialFrames(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		if err := r.Conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if err := r.Request(true, "GET", "/version"); err != nil {
				t.Fatal(err)
			}
		}
		ended = append(ended, discard(r))
	}
	for _, done := range ended {
		if err := <-done; errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection stays")
		}
	}
}

// rapidResets: requests that are given up as they are made.
func rapidResets(t *testing.T, s *arena) {
	r := s.DialFrames(t)
	done := discard(r)
	for i := range 200_000 {
		id := r.Next
		if err := errors.Join(r.Request(true, "GET", "/api/v1/secrets"), r.WriteRSTStream(id, http2.ErrCodeCancel)); err != nil {
			t.Logf("ended after %d requests", i)
			return
		}
	}
	if err := <-done; errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection stays")
	}
}
