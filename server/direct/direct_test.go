package direct_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/direct"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns a client of a handler.
func serve(t *testing.T, h http.HandlerFunc) *http.Client {
	t.Helper()
	way := direct.New(h)
	t.Cleanup(way.Close)
	return &http.Client{Transport: way.As(&authx.Identity{Name: "alice"})}
}

func TestAnswers(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		who, mine, err := direct.Authenticator{}.Authenticate(r)
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Seen", fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Host, " ", who.Identity.Name, mine, err, " ", r.URL.Scheme))
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(bytes.ToUpper(body))
	})
	resp, err := c.Post("http://host/a/b?c=d", "text/plain", strings.NewReader("text"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if got, want := resp.Header.Get("Seen"), "POST /a/b?c=d host alicetrue <nil> "; got != want || string(body) != "TEXT" || err != nil || resp.StatusCode != http.StatusTeapot {
		t.Errorf("%q, want %q; %d %q %v", got, want, resp.StatusCode, body, err)
	}
}

// TestNobody: a handler that is called without a Transport, or by one without an identity, sees no
// user.
func TestNobody(t *testing.T) {
	way := direct.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, mine, _ := (direct.Authenticator{}).Authenticate(r); mine {
			w.WriteHeader(http.StatusConflict)
		}
	}))
	defer way.Close()
	// The client's own context has no effect.
	resp, err := (&http.Client{Transport: way.As(nil)}).Get("http://host/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}

// TestStreams: written data can be read at once, and the handler learns in both ways that the client has
// stopped.
func TestStreams(t *testing.T) {
	for _, how := range []string{"close", "cancel", "transport"} {
		t.Run(how, func(t *testing.T) {
			ended := make(chan error, 1)
			way := direct.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "first")
				<-r.Context().Done()
				_, err := io.WriteString(w, "second")
				ended <- err
			}))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://host/", nil)
			resp, err := (&http.Client{Transport: way.As(nil)}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			first := make([]byte, 5)
			if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "first" {
				t.Fatalf("%q %v", first, err)
			}
			switch how {
			case "close":
				resp.Body.Close()
			case "cancel":
				cancel()
			case "transport":
				way.Close()
			}
			if err := <-ended; (err == nil) != (how == "transport") {
				t.Errorf("the handler wrote with %v", err)
			}
			if _, err := io.ReadAll(resp.Body); (err == nil) != (how == "transport") {
				t.Errorf("the client read with %v", err)
			}
			way.Close()
			if _, err := (&http.Client{Transport: way.As(nil)}).Get("http://host/"); !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// TestSlowReader: an answer waits for its reader, with all its bytes, and a deadline frees the handler if the
// client does not read.
func TestSlowReader(t *testing.T) {
	const size = 4 << 20
	wrote := make(chan error, 1)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Millisecond)); err != nil {
				t.Error(err)
			}
		}
		_, err := w.Write(bytes.Repeat([]byte("0123456789abcdef"), size/16))
		wrote <- err
	})
	resp, err := c.Get("http://host/")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if want := bytes.Repeat([]byte("0123456789abcdef"), size/16); err != nil || !bytes.Equal(body, want) {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	resp, err = c.Get("http://host/late")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := <-wrote; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a reader that takes nothing: %v", err)
	}
}

// TestStuck: handlers that wait for a client, which reads nothing or sends nothing, end by
// their deadline, when the client gives up, and with the Transport.
func TestStuck(t *testing.T) {
	read := func(_ http.ResponseWriter, r *http.Request) error {
		_, err := io.ReadAll(r.Body)
		return err
	}
	write := func(w http.ResponseWriter, _ *http.Request) error {
		_, err := w.Write(make([]byte, 4<<20))
		return err
	}
	for name, does := range map[string]func(http.ResponseWriter, *http.Request) error{"reads": read, "writes": write} {
		for _, ends := range []string{"deadline", "client", "transport"} {
			t.Run(name+" "+ends, func(t *testing.T) {
				at, ended := make(chan struct{}), make(chan error, 1)
				way := direct.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if ends == "deadline" {
						c, soon := http.NewResponseController(w), time.Now().Add(time.Millisecond)
						if err := errors.Join(c.SetReadDeadline(soon), c.SetWriteDeadline(soon)); err != nil {
							t.Error(err)
						}
					}
					close(at)
					ended <- does(w, r)
				}))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				body, sends := io.Pipe()
				defer sends.Close()
				r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://host/", body)
				asked := make(chan struct{})
				go func() {
					defer close(asked)
					if resp, err := way.As(nil).RoundTrip(r); err == nil {
						<-ctx.Done() // unread
						resp.Body.Close()
					}
				}()
				<-at
				switch ends {
				case "client":
					cancel()
				case "transport":
					way.Close()
				}
				if err := <-ended; err == nil {
					t.Error("the handler had all that it waited for")
				}
				cancel()
				<-asked
				way.Close()
			})
		}
	}
}

// TestBroken: a handler that breaks off leaves no whole answer.
func TestBroken(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/part" {
			_, _ = io.WriteString(w, "part")
		}
		panic(http.ErrAbortHandler)
	})
	if _, err := c.Get("http://host/"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("without a word: %v", err)
	}
	resp, err := c.Get("http://host/part")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || string(body) != "part" {
		t.Errorf("%q %v", body, err)
	}
}
