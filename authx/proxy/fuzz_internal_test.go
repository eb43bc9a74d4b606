package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzHeaders: no header that would name a user is left, and keys of extra values differ in lower
// case.
func FuzzHeaders(f *testing.F) {
	f.Add("X-Remote-Extra-Acme.com%2Fproject", "a", "X-Remote-Group")
	f.Add("x-remote-extra-", "b", "X-Remote-User")
	f.Add("X-Remote-Extra-%zz", "", "x-remote-uid")
	f.Fuzz(func(t *testing.T, name, value, other string) {
		a := New(Config{User: []string{"X-Remote-User"}, UID: []string{"X-Remote-Uid"}, Groups: []string{"X-Remote-Group"}, ExtraPrefix: []string{"X-Remote-Extra-", "X-More-"}})
		header := http.Header{"Accept": {"x"}}
		header.Add(name, value)
		header.Add(other, value)
		for key, values := range a.extra(header) {
			if len(values) == 0 {
				t.Fatalf("%q has no values", key)
			}
			if plain, err := url.PathUnescape(strings.ToLower(name)); err == nil && len(header) == 2 && name == other && !strings.HasSuffix(plain, key) {
				t.Fatalf("%q is %q", name, key)
			}
		}
		a.strip(header)
		for left := range header {
			canonical := http.CanonicalHeaderKey(left)
			if canonical == "X-Remote-User" || canonical == "X-Remote-Group" || canonical == "X-Remote-Uid" ||
				strings.HasPrefix(strings.ToLower(left), "x-remote-extra-") || strings.HasPrefix(strings.ToLower(left), "x-more-") {
				t.Fatalf("%q is left", left)
			}
		}
		if header.Get("Accept") == "" {
			t.Fatal("a header that names nobody is gone")
		}
	})
}
