package telemetry_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/serve/telemetry"
)

// TestVerbosity: a PUT to /debug/flags/v changes how much a running server logs; everything else changes nothing.
func TestVerbosity(t *testing.T) {
	var out strings.Builder
	v := &telemetry.Verbosity{}
	v.Set(0)
	log, err := telemetry.NewLog(&out, "text", v)
	if err != nil {
		t.Fatal(err)
	}
	h := telemetry.Profiles(v, log)["/debug/flags/v"]
	if h == nil {
		t.Fatal("there is no /debug/flags/v")
	}
	for _, c := range []struct {
		method, body string
		code         int
		answer       string
		shown        string // of an error, an info and a debug message after the request
	}{
		{"GET", "4", 406, "unsupported http method\n", "E"},
		{"PUT", "x", 400, "strconv.ParseUint: parsing \"x\": invalid syntax\n", "E"},
		{"PUT", "-1", 400, "strconv.ParseUint: parsing \"-1\": invalid syntax\n", "E"},
		{"PUT", "", 400, "strconv.ParseUint: parsing \"\": invalid syntax\n", "E"},
		{"PUT", strings.Repeat("0", 65), 400, "error reading request body: http: request body too large\n", "E"},
		{"PUT", "4", 200, "successfully set klog.logging.verbosity to 4\n", "EID"},
		{"PUT", "2", 200, "successfully set klog.logging.verbosity to 2\n", "EI"},
		{"POST", "4", 406, "unsupported http method\n", "EI"},
		{"PUT", "10", 200, "successfully set klog.logging.verbosity to 10\n", "EID"},
		{"PUT", "0", 200, "successfully set klog.logging.verbosity to 0\n", "E"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, "/debug/flags/v", strings.NewReader(c.body)))
		if w.Code != c.code || w.Body.String() != c.answer {
			t.Errorf("%s %.5s: %d %q", c.method, c.body, w.Code, w.Body)
		}
		out.Reset()
		log.Error("E")
		log.Info("I")
		log.Debug("D")
		shown := ""
		for line := range strings.Lines(out.String()) {
			_, message, _ := strings.Cut(line, "msg=")
			shown += strings.TrimSpace(message)
		}
		if shown != c.shown {
			t.Errorf("after %s %.5s the log shows %q, want %q", c.method, c.body, shown, c.shown)
		}
	}
}
