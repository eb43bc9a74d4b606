package aggregator

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
)

func TestStrays(t *testing.T) {
	for p, want := range map[string]bool{
		"/apis/g/v":                                       false,
		"/apis/g/v/":                                      false,
		"/apis/g/v/things/":                               false,
		"/apis/g/v/namespaces/a/things/x/status":          false,
		"/apis/g/v/namespaces/a/things/.x":                false,
		"/apis/g/v/namespaces/a/things/x..y":              false,
		"/apis/g/v/namespaces/a/things/x;y":               false,
		"/apis/g/v/namespaces/a/things/a%20b":             false,
		"/apis/g/v/namespaces/a/things/100%":              false,
		"/apis/g/v/namespaces/a/pods/*/m|per:s":           false,
		"/apis/g/v/namespaces/a/things/x/proxy//b":        false,
		"/apis/g/v/namespaces/a/things/x/proxy/b//c%2fd/": false,
		`/apis/g/v/namespaces/a/things/x/proxy/b\c`:       false,

		"/apis/g/v//":                                true,
		"/apis/g/v//things":                          true,
		"/apis/g//v/things":                          true,
		"/apis/g/v/things//x":                        true,
		"/apis/g/v/namespaces//things":               true,
		"/apis/g/v/namespaces/a/things//x":           true,
		"/apis/g/v/namespaces/a/things/x//status":    true,
		"/apis/g/v/namespaces/a/things/x%2fstatus":   true,
		"/apis/g/v/namespaces/a/things/x/../y":       true,
		"/apis/g/v/namespaces/a/things/..":           true,
		"/apis/g/v/./things":                         true,
		"/apis/g/v/namespaces/a/things/..;a=b/y":     true,
		`/apis/g/v/namespaces/a/things\x`:            true,
		`/apis/g/v/namespaces/a/things/..\y`:         true,
		"/apis/g/v/namespaces/a/things/%2e%2e/y":     true,
		"/apis/g/v/namespaces/a/things/x/proxy/../b": true,
		"/apis/g/v/things/x/%2e%2e/%2e%2e/y/100%":    true,
		"/apis/g/v/things/x%2fstatus/%zz":            true,
		"/apis/g/v/watch":                            false,
		"/apis/g/v/watch//things":                    true,
	} {
		if got := leavesPath(http.MethodGet, p); got != want {
			t.Errorf("%s: %v", p, got)
		}
	}
}

// TestWhatServersReadIsAuthorized: whatever way a server cleans the paths that it is sent,
// it reads from them what an authorizer was asked about.
func TestWhatServersReadIsAuthorized(t *testing.T) {
	clean := func(p string) string { // a slash at the end means nothing to anybody
		return path.Clean("/" + p)
	}
	servers := map[string]func(string) string{
		"cleans":        clean,
		"merges":        merged,
		"of RFC 3986":   func(p string) string { return (&url.URL{Path: "/"}).ResolveReference(&url.URL{Path: p}).Path },
		"decodes twice": func(p string) string { return clean(decoded(p)) },
		"has backslash": func(p string) string { return clean(strings.ReplaceAll(p, `\`, "/")) },
		"of servlets": func(p string) string {
			parts := strings.Split(p, "/")
			for i := range parts {
				if name, _, _ := strings.Cut(parts[i], ";"); name == "." || name == ".." {
					parts[i] = name
				}
			}
			return clean(strings.Join(parts, "/"))
		},
	}
	pieces := []string{"/", "/", "/", "//", "a", "things", "namespaces", "..", ".", "%2f", "%2e", "%2E.", "%", ";", "..;x", `\`, "watch", "status", "proxy", "x"}
	r := rand.New(rand.NewPCG(1, 2))
	read := func(p string) attributes {
		m := meaning(http.MethodGet, p).plain()
		m.path = strings.TrimRight(m.path, "/")
		return m
	}
	sent, kept := 0, 0
	for range 20_000 {
		p := "/apis/g/v/"
		for range r.IntN(10) {
			p += pieces[r.IntN(len(pieces))]
		}
		if leavesPath(http.MethodGet, p) || read(p).odd != "" { // odd paths are refused before
			kept++
			continue
		}
		sent++
		wire, err := url.ParseRequestURI((&url.URL{Path: p}).EscapedPath())
		if err != nil {
			t.Fatalf("%q: %v", p, err)
		}
		for name, reads := range servers {
			if asked, did := read(p), read(reads(wire.Path)); did != asked {
				t.Fatalf("%q: authorized were %+v; a server that %s does %+v", p, asked, name, did)
			}
		}
	}
	if sent < 1000 || kept < 1000 {
		t.Errorf("%d were sent, %d kept", sent, kept)
	}
}

// TestRepeatedParameters: of the parameters that the authorizer reads, a server gets the value that the authorizer has read.
func TestRepeatedParameters(t *testing.T) {
	for sent, want := range map[string]string{
		"fieldSelector=spec.nodeName%3Da&fieldSelector=": "fieldSelector=spec.nodeName%3Da",
		"labelSelector=a&labelSelector=b&limit=1":        "labelSelector=a&limit=1",
		"watch=0&watch=1":             "watch=0",
		"command=a&command=b&watch=1": "command=a&command=b&watch=1",
		"":                            "",
	} {
		q, err := url.ParseQuery(sent)
		if err != nil {
			t.Fatal(err)
		}
		if got := readAlike(q).Encode(); got != want {
			t.Errorf("%s: %s, want %s", sent, got, want)
		}
	}
}
