package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/wallclock"
)

// TestSetClock sets the wall clock of a server. Files that change afterwards are read again, and connections from before go on.
func TestSetClock(t *testing.T) {
	t.Parallel()
	const hours = 9 * time.Hour
	first, second := harness.NewAuthority(t, "first"), harness.NewAuthority(t, "second")
	authorities := filepath.Join(t.TempDir(), "authorities.crt")
	write := func(a *harness.Authority) {
		t.Helper()
		if err := os.WriteFile(authorities, a.PEM, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(first)
	s := harness.StartT(t, harness.Options{Args: []string{"--client-ca-file", authorities}})
	roots, err := s.CA()
	if err != nil {
		t.Fatal(err)
	}
	clock, err := wallclock.Open(s.Pid())
	if err != nil {
		t.Fatal(err)
	}
	defer clock.Close()
	set := func(ahead time.Duration) {
		t.Helper()
		if err := clock.Set(ahead); err != nil {
			t.Fatal(err)
		}
	}
	// client returns a client of HTTP/1.1 with one connection.
	client := func(certificate *tls.Certificate) *http.Client {
		c := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{
			RootCAs: roots, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil },
		}}}
		t.Cleanup(c.CloseIdleConnections)
		return c
	}
	ask := func(c *http.Client, token string) (who string, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/apis/authentication.k8s.io/v1/selfsubjectreviews", strings.NewReader(`{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`))
		if err != nil {
			return "", err
		}
		req.GetBody = nil // a broken connection is not hidden by another one
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := c.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return fmt.Sprintf("%d %s", resp.StatusCode, text), err
	}

	steady := client(&tls.Certificate{})
	if _, err := ask(steady, harness.AdminToken); err != nil {
		t.Fatal(err)
	}
	set(hours)
	if who, err := ask(client(first.Client(t, "anna")), ""); err != nil || !strings.HasPrefix(who, "401 ") {
		t.Fatalf("a certificate whose time is over by the server's clock: %s, %v", who, err)
	}
	set(0)
	write(second)
	eventually(t, "a changed file of authorities counts after the clock was ahead", func() bool {
		who, err := ask(client(second.Client(t, "bert")), "")
		return err == nil && strings.Contains(who, `"username":"bert"`)
	})

	set(-hours)
	const writeTimeout = 30 * time.Second // package server/wire
	for began := time.Now(); time.Since(began) < writeTimeout+3*time.Second; time.Sleep(500 * time.Millisecond) {
		if _, err := ask(steady, harness.AdminToken); err != nil {
			t.Fatalf("a connection broke %s after the clock was set back: %v", time.Since(began).Round(time.Second), err)
		}
	}
}
