package rules_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// TestNames: names of signers, of trust bundles and of drivers, and the errors of invalid ones.
func TestNames(t *testing.T) {
	p := field.NewPath("spec", "name")
	signer := func(name string) string { return rules.SignerName(name, p).ToAggregate().Error() }
	for name, want := range map[string]string{
		"":                                  "spec.name: Required value",
		"example.com":                       "must be a fully qualified domain and path of the form 'example.com/signer-name'",
		"example.com/a/b":                   "must be a fully qualified domain and path",
		"example/a":                         "should be a domain with at least two segments separated by dots",
		"Example.com/a":                     `validating label "Example": a lowercase RFC 1123 label`,
		"example.com/A":                     `validating label "A": a lowercase RFC 1123 subdomain`,
		strings.Repeat("a.", 130) + "com/a": "Too long: may not be more than 253 bytes",
		"example.com/" + strings.Repeat("a.", 300) + "b": "Too long: may not be more than 571 bytes",
	} {
		if got := signer(name); !strings.Contains(got, want) {
			t.Errorf("signer %.40q: %s, want %s", name, got, want)
		}
	}
	if errs := rules.SignerName("example.com/a.b", p); len(errs) != 0 {
		t.Errorf("a good signer: %v", errs)
	}
	for _, c := range []struct{ signer, name, want string }{
		{"", "a.b", ""}, {"", "a:b", `must not have ":" in its name`}, {"", "A", "a lowercase RFC 1123 subdomain"},
		{"example.com/s", "example.com:s:a", ""}, {"example.com/s", "a", "must be named with prefix example.com:s:"}, {"example.com/s", "example.com:s:A", "a lowercase RFC 1123 subdomain"},
	} {
		if got := strings.Join(rules.TrustBundleName(c.signer, c.name, false), "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("bundle %q of %q: %q, want %q", c.name, c.signer, got, c.want)
		}
	}
	for name, want := range map[string]string{"": "Required value", strings.Repeat("a", 64): "may not be more than 63 bytes", "a_b": "a lowercase RFC 1123 subdomain"} {
		if got := rules.DriverName(name, p).ToAggregate().Error(); !strings.Contains(got, want) {
			t.Errorf("driver %.20q: %s, want %s", name, got, want)
		}
	}
	if errs := rules.DriverName("CSI.example.com", p); len(errs) != 0 {
		t.Errorf("a good driver: %v", errs)
	}
}

// TestAmong: short lists and long ones are searched alike.
func TestAmong(t *testing.T) {
	for _, n := range []int{0, 1, 16, 17, 1000} {
		list := make([]int, n)
		for i := range list {
			list[i] = 2 * i
		}
		among := rules.In(list)
		for i := range 2*n + 2 {
			if got, want := among.Has(i), i%2 == 0 && i < 2*n; got != want {
				t.Fatalf("%d among %d: %t", i, n, got)
			}
		}
	}
}
