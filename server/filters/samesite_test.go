package filters_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/filters"
)

// presented is a credential; ends is the end of a certificate.
type presented struct{ ends time.Time }

func (p presented) Authenticate(*http.Request) (*authx.Authenticated, bool, error) {
	return &authx.Authenticated{Identity: &authx.Identity{Name: "u"}, CertificateEnds: p.ends}, true, nil
}

// TestSameSite: a page of another site cannot use the certificate of a browser, other than to send requests whose answers it cannot read.
func TestSameSite(t *testing.T) {
	origins, err := filters.Origins([]string{`^https://ui\.example$`})
	if err != nil {
		t.Fatal(err)
	}
	const socket = "Connection: Upgrade\nUpgrade: websocket\n"
	for _, c := range []struct {
		method, headers string
		passes          bool
	}{
		{"POST", "", true},
		{"POST", "Origin: https://api.example:6443", true},
		{"POST", "Origin: https://evil.example", false},
		{"POST", "Origin: https://api.example", false},
		{"POST", "Origin: null", false},
		{"POST", "Origin: https://ui.example", true},
		{"POST", "Sec-Fetch-Site: none", true},
		{"POST", "Sec-Fetch-Site: same-origin\nOrigin: http://localhost:8001", true}, // by way of kubectl proxy
		{"POST", "Sec-Fetch-Site: same-site\nOrigin: https://b.example", false},
		{"POST", "Sec-Fetch-Site: cross-site", false},
		{"POST", "Sec-Fetch-Site: cross-site\nOrigin: https://ui.example", true},
		{"POST", "Origin: http://localhost", false},
		{"DELETE", "Origin: https://evil.example", false},
		{"GET", "Sec-Fetch-Site: cross-site\nOrigin: https://evil.example", true},
		{"GET", socket, true},
		{"GET", socket + "Origin: https://api.example:6443", true},
		{"GET", socket + "Origin: https://ui.example", true},
		{"GET", socket + "Origin: http://localhost", true},
		{"GET", socket + "Origin: http://127.0.0.1:8001", true},
		{"GET", socket + "Origin: https://localhost.evil.example", false},
		{"GET", socket + "Origin: https://evil.example", false},
		{"GET", socket + "Sec-Fetch-Site: cross-site\nOrigin: https://evil.example", false},
	} {
		for _, certificate := range []bool{true, false} {
			r := httptest.NewRequest(c.method, "/api/v1/namespaces/a/pods/p/exec", nil)
			r.Host = "api.example:6443"
			for line := range strings.Lines(c.headers) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				r.Header.Set(name, value)
			}
			by := presented{}
			if certificate {
				by.ends = time.Now()
			}
			reached := false
			w := serve(r, func(http.ResponseWriter, *http.Request) { reached = true }, filters.Authenticate(filters.SameSite(by, origins), nil, quiet, fail))
			if want := c.passes || !certificate; reached != want || !want && w.Code != http.StatusUnauthorized {
				t.Errorf("%s %q with a certificate %t: %d, reached %t", c.method, c.headers, certificate, w.Code, reached)
			}
		}
	}
}
