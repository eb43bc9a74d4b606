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
	if pages := telemetry.ZPages(release.Defaults(), func(string) bool { return false }, flags, time.Now()); len(pages) != 0 {
		t.Errorf("pages without their gates: %v", pages)
	}
	pages := telemetry.ZPages(release.Defaults(), func(string) bool { return true }, flags, time.Now().Add(-3723*time.Second))
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

// TestZPagesOfPrograms: from 1.33 on programs ask for a kind, as JSON or YAML.
func TestZPagesOfPrograms(t *testing.T) {
	flags := Command().Flags()
	if err := flags.Parse([]string{"--store=postgres://u:s3cret@h/d"}); err != nil {
		t.Fatal(err)
	}
	chosen, err := release.Choose(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	chosen.Version = release.V136
	pages := telemetry.ZPages(chosen, func(string) bool { return true }, flags, time.Now())
	for _, c := range []struct{ path, accept, media, holds, warning string }{
		{"/statusz", "", "text/plain; charset=utf-8", "Paths: /flagz /healthz /livez /metrics /readyz /statusz /version", ""},
		{"/statusz", "*/*", "text/plain; charset=utf-8", "Binary version: 1.36.2\nEmulation version: 1.36\n", ""},
		{"/statusz", "application/json;v=v1beta1;g=config.k8s.io;as=Statusz", "application/json;g=config.k8s.io;v=v1beta1;as=Statusz", `"apiVersion":"config.k8s.io/v1beta1"`, ""},
		{"/statusz", "application/json;v=v1alpha1;g=config.k8s.io;as=Statusz", "application/json;g=config.k8s.io;v=v1alpha1;as=Statusz", `"emulationVersion":"1.36"`, "deprecated"},
		{"/statusz", "application/yaml;v=v1beta1;g=config.k8s.io;as=Statusz", "application/yaml;g=config.k8s.io;v=v1beta1;as=Statusz", "kind: Statusz\n", ""},
		{"/flagz", "application/json;v=v1beta1;g=config.k8s.io;as=Flagz", "application/json;g=config.k8s.io;v=v1beta1;as=Flagz", `"secure-port":"6443"`, ""},
		{"/flagz", "application/json;v=v1beta1;g=config.k8s.io;as=Statusz", "application/json", `"only the following media types are accepted: application/json, application/yaml, text/plain, application/cbor"`, ""},
		{"/flagz", "application/json", "application/json", `"reason":"NotAcceptable"`, ""},
		{"/flagz", "application/vnd.kubernetes.protobuf", "application/json", `"reason": "NotAcceptable"`, ""},
		{"/flagz", "application/yaml", "application/yaml", "reason: NotAcceptable\n", ""},
		{"/flagz", "text/plain;x=y", "text/plain; charset=utf-8", "has no formatting compatibility guarantees", ""},
		{"/flagz", "text/plain;q=0.5, application/yaml;v=v1beta1;g=config.k8s.io;as=Flagz", "application/yaml;g=config.k8s.io;v=v1beta1;as=Flagz", "kind: Flagz\n", ""},
		{"/statusz", "application/cbor;v=v1beta1;g=config.k8s.io;as=Statusz", "application/cbor;g=config.k8s.io;v=v1beta1;as=Statusz", "\xd9\xd9\xf7", ""},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", c.path, nil)
		r.Header.Set("Accept", c.accept)
		pages[c.path].ServeHTTP(w, r)
		if w.Header().Get("Content-Type") != c.media || !strings.Contains(w.Body.String(), c.holds) || strings.Contains(w.Body.String(), "s3cret") ||
			!strings.Contains(w.Header().Get("Warning"), c.warning) || c.warning == "" && w.Header().Get("Warning") != "" {
			t.Errorf("%s as %q: %v %s", c.path, c.accept, w.Header(), w.Body)
		}
	}
}
