package rules_test

import (
	"encoding/pem"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// TestCABundle: a bundle needs one certificate; the error names the first fault, as that of client-go does.
func TestCABundle(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	certificate := block("CERTIFICATE", s.Certificate().Raw)
	for bundle, want := range map[string]string{
		certificate: "", block("KEY", nil) + certificate: "", block("CERTIFICATE", []byte("x")) + certificate: "",
		"":                                "no valid certificate authority data seen",
		block("KEY", nil):                 "no valid certificate authority data seen",
		"x":                               "unable to parse bytes as PEM block",
		block("KEY", nil) + "x":           "unable to parse bytes as PEM block",
		block("CERTIFICATE", []byte("x")): "failed to parse certificate: x509: malformed certificate",
	} {
		err := rules.CABundle([]byte(bundle))
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != "unable to load root certificates: "+want) {
			t.Errorf("%q: %v, want %q", bundle, err, want)
		}
	}
}

// TestReviewVersions: a webhook names each version once, and one that the server can send, unless that is tolerated.
func TestReviewVersions(t *testing.T) {
	for _, c := range []struct {
		versions string
		tolerant bool
		want     string
	}{
		{"", true, "v: Required value: missing"}, {"v1", false, ""}, {"v2 v1beta1", false, ""}, {"v2", true, ""},
		{"v2", false, `v: Invalid value: ["v2"]: must include at least one of v1, v1beta1`},
		{"v1 v1", false, `v[1]: Invalid value: "v1": duplicate version`},
		{"v1 V", false, "v[1]: Invalid value"},
	} {
		err := rules.ReviewVersions(strings.Fields(c.versions), c.tolerant, "missing", field.NewPath("v")).ToAggregate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.versions, err, c.want)
		}
	}
}

// TestErrorsOfWebhooksEnd: a path with a million invalid segments, and a list of as many versions, have as many errors as an answer
// contains.
func TestErrorsOfWebhooksEnd(t *testing.T) {
	const many = 1 << 20
	empty, odd := strings.Repeat("/", many), strings.Repeat("/_", many)
	for what, errs := range map[string]field.ErrorList{
		"empty segments": rules.WebhookService("ns", "s", &empty, 443, field.NewPath("service")),
		"odd segments":   rules.WebhookService("ns", "s", &odd, 443, field.NewPath("service")),
		"versions":       rules.ReviewVersions(slices.Repeat([]string{"V"}, many), false, "", field.NewPath("v")),
	} {
		if n := len(errs); n < rules.MaxErrors || n > rules.MaxErrors+10 {
			t.Errorf("%s: %d errors", what, n)
		}
	}
}

func FuzzWebhookURL(f *testing.F) {
	f.Add("https://host/path", "/a/b")
	f.Add("http://u:p@x/y?q=1#f", "//")
	f.Fuzz(func(t *testing.T, url, path string) {
		rules.WebhookURL(url, field.NewPath("url"))
		rules.WebhookService("ns", "s", &path, 443, field.NewPath("service"))
	})
}
