package serve

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/serve/telemetry"
	"github.com/rowlock/rowlock/server/release"
)

func TestZPages(t *testing.T) {
	flags := Command().Flags()
	if err := flags.Parse([]string{"--secure-port=1234", "--store=postgres://u:s3cret@h/d"}); err != nil {
		t.Fatal(err)
	}
	if pages := telemetry.ZPages(release.Unasked(), func(string) bool { return false }, flags, time.Now()); len(pages) != 0 {
		t.Errorf("pages without their gates: %v", pages)
	}
	pages := telemetry.ZPages(release.Unasked(), func(string) bool { return true }, flags, time.Now().Add(-3723*time.Second))
	get := func(path, accept string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept", accept)
		pages[path].ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if code, body := get("/statusz", "*/*"); code != 200 || !strings.Contains(body, "Up: 1 hr 02 min 03 sec\n") || !strings.Contains(body, "Binary version: 1.32.0\n") {
		t.Errorf("%d %s", code, body)
	}
	if code, body := get("/flagz", "text/plain;charset=UTF-8, text/html"); code != 200 || !strings.Contains(body, "\nsecure-port: 1234\n") || strings.Contains(body, "s3cret") {
		t.Errorf("%d %s", code, body)
	}
	for _, accept := range []string{"", "application/json", "text/plain;charset=latin1", "text/html"} {
		if code, _ := get("/flagz", accept); code != 406 {
			t.Errorf("Accept %q: %d", accept, code)
		}
	}
}
