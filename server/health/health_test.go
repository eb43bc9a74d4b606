package health_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/health"
)

func TestChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store, booted atomic.Bool
		probe := func(well *atomic.Bool) func(context.Context) error {
			return func(context.Context) error {
				if !well.Load() {
					return errors.New("a reason")
				}
				return nil
			}
		}
		store.Store(true)
		c := health.New(health.Config{
			Live:  []health.Check{{Name: "etcd", Probe: probe(&store)}},
			Ready: []health.Check{{Name: "feed", Probe: probe(&store)}},
			Boot:  []health.Check{{Name: "poststarthook/boot", Probe: probe(&booted)}},
			Grace: time.Minute,
		})
		get := func(want int, path, body string) {
			t.Helper()
			w := httptest.NewRecorder()
			c.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if w.Code != want || w.Body.String() != body {
				t.Errorf("%s: %d %q, want %d %q", path, w.Code, w.Body, want, body)
			}
			if got := w.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
				t.Errorf("%s: Content-Type %s", path, got)
			}
			// A single check that passes answers without the header.
			single := want == 200 && strings.Count(path, "/") > 1 && !strings.Contains(path, "exclude")
			if got := w.Header().Get("X-Content-Type-Options"); (got == "nosniff") == single {
				t.Errorf("%s: X-Content-Type-Options %q", path, got)
			}
		}
		const lines = "[+]ping ok\n[+]log ok\n[+]etcd ok\n"

		// Starting: /livez is patient for a minute, the others are not.
		get(200, "/livez", "ok")
		get(500, "/healthz", lines+"[-]poststarthook/boot failed: reason withheld\nhealthz check failed\n")
		get(500, "/readyz", lines+"[+]feed ok\n[-]poststarthook/boot failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n")
		get(200, "/readyz?exclude=poststarthook/boot", "ok")
		get(200, "/livez/poststarthook/boot", "ok")
		get(500, "/readyz/poststarthook/boot", "internal server error: a reason\n")
		time.Sleep(time.Minute + 1)
		get(500, "/livez", lines+"[-]poststarthook/boot failed: reason withheld\nlivez check failed\n")

		// Serving.
		booted.Store(true)
		get(200, "/livez?verbose", lines+"[+]poststarthook/boot ok\nlivez check passed\n")
		get(200, "/readyz?verbose=false&exclude=etcd&exclude=ping", "[+]ping excluded: ok\n[+]log ok\n[+]etcd excluded: ok\n[+]feed ok\n[+]poststarthook/boot ok\n[+]shutdown ok\nreadyz check passed\n")
		get(200, "/livez?verbose&exclude=b&exclude=a", lines+"[+]poststarthook/boot ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nlivez check passed\n")
		get(200, "/livez?exclude=nothing", "ok")
		get(200, "/readyz/ping?verbose", "ok")
		for _, path := range []string{"/livez/feed", "/livez/nosuch", "/livez/", "/readyz/ping/", "/healthz/shutdown"} {
			get(404, path, "404 page not found\n")
		}

		// The database is gone.
		store.Store(false)
		get(500, "/livez", "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n[+]poststarthook/boot ok\nlivez check failed\n")
		get(200, "/livez?exclude=etcd", "ok")
		store.Store(true)

		// Leaving: only /readyz reports it.
		c.Drain()
		get(200, "/livez", "ok")
		get(200, "/healthz", "ok")
		get(500, "/readyz", lines+"[+]feed ok\n[+]poststarthook/boot ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n")

		w := httptest.NewRecorder()
		c.SLIs().ServeHTTP(w, httptest.NewRequest("GET", "/metrics/slis", nil))
		for _, want := range []string{
			`kubernetes_healthcheck{name="shutdown",type="readyz"} 0`,
			`kubernetes_healthcheck{name="etcd",type="livez"} 1`,
			`kubernetes_healthchecks_total{name="etcd",status="error",type="livez"} 1`,
		} {
			if !strings.Contains(w.Body.String(), want+"\n") {
				t.Errorf("/metrics/slis has no %s", want)
			}
		}
	})
}

func TestServes(t *testing.T) {
	for path, want := range map[string]bool{"/livez": true, "/readyz/ping": true, "/healthz/": true, "/livezz": false, "/": false, "/api/livez": false} {
		if health.Serves(path) != want {
			t.Errorf("%s: want %t", path, want)
		}
	}
}

// TestLog: repeated probes do not fill the log, and each check that
// fails is logged.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	bad := func(context.Context) error { return errors.New("a reason") }
	c := health.New(health.Config{Live: []health.Check{{Name: "one", Probe: bad}}, Ready: []health.Check{{Name: "two", Probe: bad}}, Log: slog.New(slog.NewTextHandler(&out, nil))})
	for range 50 {
		for _, path := range []string{"/readyz", "/readyz/two", "/livez", "/healthz"} {
			c.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		}
	}
	for _, check := range []string{"check=one", "check=two"} {
		if n := strings.Count(out.String(), check); n != 1 {
			t.Errorf("%d lines with %s: %s", n, check, &out)
		}
	}
}

// TestWell: a check that a restart would not help counts for /healthz and /readyz alone.
func TestWell(t *testing.T) {
	c := health.New(health.Config{Healthy: []health.Check{{Name: "kms-providers", Probe: func(context.Context) error { return errors.New("down") }}}})
	for path, want := range map[string]int{"/healthz": 500, "/readyz": 500, "/livez": 200, "/healthz/kms-providers": 500, "/readyz/kms-providers": 500, "/livez/kms-providers": 404} {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}
