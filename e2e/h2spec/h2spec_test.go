// Package h2spec runs h2spec, the conformance tests of HTTP/2 by Moto Ishizawa, against the
// server's own HTTP/2.
package h2spec

import (
	"crypto/tls"
	"encoding/xml"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	spec "github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/server/h2"
	"github.com/rowlock/rowlock/server/wire"
)

// cases is the number of cases: fewer results mean that some did not run.
const cases = 146

// TestPackage runs all cases, the strict ones too, against package h2 alone.
func TestPackage(t *testing.T) {
	s := h2.New(h2.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the client sees what it gets
		_, _ = io.WriteString(w, "0123456789")
	})})
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cert := harness.NewAuthority(t, "h2spec").Server(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(wire.Listener{Listener: l}, s, &tls.Config{Certificates: []tls.Certificate{*cert}, NextProtos: []string{"h2"}})
	}()
	defer func() { _ = l.Close(); <-done }()
	run(t, l.Addr().(*net.TCPAddr).Port, "/")
}

func serve(l net.Listener, s *h2.Server, c *tls.Config) {
	for {
		raw, err := l.Accept()
		if err != nil {
			return
		}
		conn := tls.Server(raw, c)
		if conn.Handshake() == nil {
			s.Serve(conn)
		}
	}
}

// TestServer runs them against the program.
func TestServer(t *testing.T) {
	s := harness.StartT(t, harness.Options{Args: []string{"--http2=own"}})
	run(t, s.Port, "/version")
}

// run fails for each case that fails or is skipped.
func run(t *testing.T, port int, path string) {
	report := filepath.Join(t.TempDir(), "report.xml")
	ok, err := spec.Run(&config.Config{
		Host: "127.0.0.1", Port: port, Path: path, Timeout: 2 * time.Second, MaxHeaderLen: 4000, TLS: true, Insecure: true, Strict: true, JUnitReport: report,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Error("some cases fail")
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var suites struct {
		Suites []struct {
			Cases []struct {
				Name    string    `xml:"classname,attr"`
				Package string    `xml:"package,attr"`
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &suites); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range suites.Suites {
		for _, c := range s.Cases {
			if n++; c.Failure != nil || c.Error != nil || c.Skipped != nil {
				t.Errorf("%s: %s", c.Package, c.Name)
			}
		}
	}
	if n < cases {
		t.Errorf("%d cases were run, want %d", n, cases)
	}
}
