package request_test

import (
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/request"
)

// line renders what matters of an Info.
func line(i *request.Info) string {
	if !i.IsResource {
		return "path " + i.Verb + " " + i.Path
	}
	s := i.Verb + " " + i.Group + "|" + i.Version + "|" + i.Namespace + "|" + i.Resource + "|" + i.Name
	if i.Subresource != "" {
		s += "|" + i.Subresource
	}
	if i.NameFromSelector {
		s += " (selected)"
	}
	return s
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ method, url, want string }{
		{"GET", "/", "path get /"},
		{"GET", "/healthz", "path get /healthz"},
		{"HEAD", "/healthz", "path head /healthz"},
		{"GET", "/api", "path get /api"},
		{"GET", "/api/v1", "path get /api/v1"},
		{"GET", "/api/v1/", "path get /api/v1/"},
		{"GET", "/apis/apps/v1", "path get /apis/apps/v1"},
		{"GET", "//api/v1/pods", "path get //api/v1/pods"},
		{"GET", "/API/v1/pods", "path get /API/v1/pods"},

		{"GET", "/api/v1/pods", "list |v1||pods|"},
		{"HEAD", "/api/v1/pods", "list |v1||pods|"},
		{"OPTIONS", "/api/v1/pods", " |v1||pods|"},
		{"GET", "/api/v1/namespaces/a/pods", "list |v1|a|pods|"},
		{"GET", "/api/v1/namespaces/a/pods/", "list |v1|a|pods|"},
		{"GET", "/api/v1/namespaces/a/pods/p", "get |v1|a|pods|p"},
		{"POST", "/api/v1/namespaces/a/pods", "create |v1|a|pods|"},
		{"PUT", "/api/v1/namespaces/a/pods/p/status", "update |v1|a|pods|p|status"},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/d/scale", "patch apps|v1|a|deployments|d|scale"},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments/d", "delete apps|v1|a|deployments|d"},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments", "deletecollection apps|v1|a|deployments|"},
		{"GET", "/api/v1/nodes/n/proxy/a/b", "get |v1||nodes|n|proxy"},

		{"GET", "/api/v1/namespaces", "list |v1||namespaces|"},
		{"POST", "/api/v1/namespaces", "create |v1||namespaces|"},
		{"GET", "/api/v1/namespaces/a", "get |v1|a|namespaces|a"},
		{"GET", "/api/v1/namespaces/a/", "get |v1|a|namespaces|a"},
		{"PUT", "/api/v1/namespaces/a/status", "update |v1|a|namespaces|a|status"},
		{"PUT", "/api/v1/namespaces/a/finalize", "update |v1|a|namespaces|a|finalize"},

		{"GET", "/api/v1/pods?watch", "watch |v1||pods|"},
		{"GET", "/api/v1/pods?watch=", "watch |v1||pods|"},
		{"GET", "/api/v1/pods?watch=1", "watch |v1||pods|"},
		{"GET", "/api/v1/pods?watch=true&timeoutSeconds=x", "watch |v1||pods|"},
		{"GET", "/api/v1/pods?watch=0", "list |v1||pods|"},
		{"GET", "/api/v1/pods?watch=False", "list |v1||pods|"},
		{"GET", "/api/v1/namespaces/a/pods/p?watch=1", "watch |v1|a|pods|p"},
		{"GET", "/api/v1/namespaces/a/pods/p/log?watch=1", "get |v1|a|pods|p|log"},
		{"GET", "/api/v1/namespaces/a?watch=1", "watch |v1|a|namespaces|a"},
		{"GET", "/api/v1/watch/namespaces/a/pods", "watch |v1|a|pods|"},
		{"GET", "/api/v1/watch/namespaces/a/pods?fieldSelector=metadata.name%3Dx", "watch |v1|a|pods|"},
		{"GET", "/api/v1/watch/namespaces/a/pods/p", "watch |v1|a|pods|p"},

		{"GET", "/api/v1/pods?fieldSelector=metadata.name%3Dx", "list |v1||pods|x (selected)"},
		{"GET", "/api/v1/pods?watch=1&fieldSelector=metadata.name%3Dx,spec.nodeName=n", "watch |v1||pods|x (selected)"},
		{"GET", "/api/v1/pods?fieldSelector=metadata.name!%3Dx", "list |v1||pods|"},
		{"GET", "/api/v1/pods?fieldSelector=metadata.name%3Da%252Fb", "list |v1||pods|"},
		{"DELETE", "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx", "deletecollection |v1|a|pods|"},
		{"GET", "/api/v1/namespaces/a/pods/p?fieldSelector=metadata.name%3Dx", "get |v1|a|pods|p"},

		{"GET", "/api/v1//pods", "get |v1|||pods"},
		{"GET", "/api/v1/namespaces//pods", "list |v1||pods|"},
		{"GET", "/api/v1/namespaces//pods/p", "get |v1||pods|p"},
		{"GET", "/api/v1/namespaces/a//pods", "get |v1|a||pods"},
		{"GET", "/api/v1/namespaces/a/pods//log", "list |v1|a|pods||log"},
		{"GET", "/api//v1/pods", "get |||v1|pods"},
		{"GET", "/apis//v1/pods", "list |v1||pods|"},
		{"GET", "/api/v1/namespaces/a/pods//", "list |v1|a|pods|"},
		{"GET", "/api/v1/namespaces/a/pods/..", "get |v1|a|pods|.."},
		{"GET", "/api/v1/namespaces/../pods", "list |v1|..|pods|"},
		{"GET", "/api/v1/namespaces/a/pods%2Fp", "get |v1|a|pods|p"},
		{"GET", "/api/v1/namespaces/a%2Fsecrets/pods", "get |v1|a|secrets|pods"},
		{"GET", "/api/v1/namespaces/a/pods/p%2Fstatus", "get |v1|a|pods|p|status"},
		{"GET", "/api%2Fv1/pods/x", "get |v1||pods|x"},
		{"GET", "/apis/apps/v1/namespaces/a/deployments/%20", "get apps|v1|a|deployments| "},
	} {
		u, err := url.ParseRequestURI(c.url)
		if err != nil {
			t.Fatal(err)
		}
		info, err := request.Parse(c.method, u)
		if err != nil {
			t.Errorf("%s %s: %v", c.method, c.url, err)
			continue
		}
		if got := line(info); got != c.want {
			t.Errorf("%s %s:\n got %q\nwant %q", c.method, c.url, got, c.want)
		}
	}
}

func TestParseUnclear(t *testing.T) {
	for _, p := range []string{"/api/v1/watch", "/apis/apps/v1/watch/"} {
		if _, err := request.Parse("GET", &url.URL{Path: p}); err == nil {
			t.Errorf("%s: no error", p)
		}
	}
}

// TestManySegments: a path of any number of segments has few parts, which make the path again. What they cost is counted in allocated
// bytes.
func TestManySegments(t *testing.T) {
	rest := strings.Repeat("/a", 1<<19)
	for _, p := range []string{"/api/v1/pods/p/proxy", "/apis/g/v1/watch/namespaces/n/pods/p/proxy"} {
		u := &url.URL{Path: p + rest}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		info, err := request.Parse("GET", u)
		runtime.ReadMemStats(&after)
		if err != nil || info.Resource != "pods" || info.Name != "p" || info.Subresource != "proxy" {
			t.Fatalf("%s: %v, %v", p, info, err)
		}
		if got := "/" + strings.Join(info.Parts[3:], "/"); got != rest {
			t.Errorf("%s: the rest has %d bytes, not %d", p, len(got), len(rest))
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
			t.Errorf("%s: %d bytes are allocated", p, n)
		}
	}
}

// FuzzParse holds that a parsed resource request can be read back from the
// segments of the decoded path.
func FuzzParse(f *testing.F) {
	f.Add("GET", "/api/v1/namespaces/a/pods/p?watch=1&fieldSelector=metadata.name=x")
	f.Add("DELETE", "/apis/a/v1//b/%2F/..")
	f.Add("GET", "/api/v1/watch/namespaces/%2e%2e/pods")
	f.Fuzz(func(t *testing.T, method, raw string) {
		u, err := url.ParseRequestURI(raw)
		if err != nil {
			return
		}
		info, err := request.Parse(method, u)
		if err != nil {
			return
		}
		if !info.IsResource {
			if info.Resource != "" || info.Name != "" || info.Namespace != "" {
				t.Fatalf("%q: a path request names %+v", raw, info)
			}
			return
		}
		sent := map[string]bool{}
		for _, s := range strings.Split(u.Path, "/") {
			sent[s] = true
		}
		for _, v := range []string{info.Group, info.Version, info.Namespace, info.Resource, info.Subresource} {
			if v != "" && !sent[v] {
				t.Fatalf("%q: %q is no segment of the path", raw, v)
			}
		}
		if info.Name != "" && !info.NameFromSelector && !sent[info.Name] {
			t.Fatalf("%q: name %q is no segment of the path", raw, info.Name)
		}
	})
}
