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

// TestProbesWhileStarting: checks that fail during a start cause no warning. It is one where the
// start takes more than a minute, and after it.
func TestProbesWhileStarting(t *testing.T) {
	for _, c := range []struct {
		name    string
		after   time.Duration
		started bool
		grace   time.Duration
		want    string
	}{
		{"at once", 0, false, 0, "DEBUG"},
		{"within the minute", 59 * time.Second, false, 0, "DEBUG"},
		{"a start that takes long", 61 * time.Second, false, 0, "WARN"},
		{"a start that may take long", 61 * time.Second, false, 5 * time.Minute, "DEBUG"},
		{"started", time.Second, true, 0, "WARN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				var started atomic.Bool
				checks := health.New(health.Config{
					Ready: []health.Check{{Name: "informer-sync", Probe: func(context.Context) error { return errors.New("not loaded") }}},
					Boot: []health.Check{{Name: "poststarthook/boot", Probe: func(context.Context) error {
						if !started.Load() {
							return errors.New("starting")
						}
						return nil
					}}},
					Grace: c.grace,
					Log:   slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
				})
				started.Store(c.started)
				time.Sleep(c.after)
				w := httptest.NewRecorder()
				checks.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
				if w.Code != 500 {
					t.Errorf("%d, want 500", w.Code)
				}
				for line := range strings.Lines(out.String()) {
					if strings.Contains(line, "check=informer-sync") && strings.Contains(line, "level="+c.want) {
						return
					}
				}
				t.Errorf("want %s for informer-sync:\n%s", c.want, &out)
			})
		})
	}
}
