package remote_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
)

// wantBound wants an error that is a bound, and names it.
func wantBound(t *testing.T, what string, err error, text string) {
	t.Helper()
	var bound *remote.BoundError
	if !errors.As(err, &bound) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: the error is %v, want a bound with %q", what, err, text)
	}
}

// TestBoundsOfLists: pages have a bound of their own, as each may be small and tokens are
// remembered; and so have lists of which nothing is kept.
func TestBoundsOfLists(t *testing.T) {
	f := newFake(t)
	page := 0
	endless := func(w http.ResponseWriter, _ *http.Request) {
		page++
		fmt.Fprint(w, configMaps("9", fmt.Sprint(strings.Repeat("t", 1000), page), fmt.Sprint("x", page)))
	}
	f.serve(maps, endless)
	_, _, err := collect(t, f.client(t, func(cfg *remote.Config) { cfg.Pages = 50 }), remote.Options{})
	wantBound(t, "endless pages", err, "more than 50 pages")
	if n := f.times(maps); n != 50 {
		t.Errorf("%d pages were read", n)
	}

	f.serve("/apis", text(`{"groups":[{"name":"apiregistration.k8s.io","versions":[{"version":"v1"}]}]}`))
	f.serve("/apis/apiregistration.k8s.io/v1", text(`{"resources":[{"name":"apiservices","kind":"APIService","verbs":["list"]}]}`))
	f.serve("/apis/apiregistration.k8s.io/v1/apiservices", func(w http.ResponseWriter, _ *http.Request) {
		page++
		fmt.Fprintf(w, `{"metadata":{"resourceVersion":"9","continue":"t%d"},"items":[{"metadata":{"name":"s%d"},"spec":{"group":"g%d","version":"v1","service":{}}}]}`, page, page, page)
	})
	_, _, err = collect(t, f.client(t, func(cfg *remote.Config) { cfg.Total = 5000 }), remote.Options{})
	wantBound(t, "a list of which nothing is kept", err, "all objects together have more than 5000 bytes")
	many := make([]string, 50_001)
	for i := range many {
		many[i] = fmt.Sprintf(`{"metadata":{"name":"s%d"},"spec":{"group":"g%d","version":"v1","service":{}}}`, i, i)
	}
	f.serve("/apis/apiregistration.k8s.io/v1/apiservices", text(`{"metadata":{"resourceVersion":"9"},"items":[`+strings.Join(many, ",")+`]}`))
	_, _, err = collect(t, f.client(t, nil), remote.Options{})
	wantBound(t, "what is remembered of others", err, "more than 50000 of them")
}

// TestBoundsOfDiscovery: a server is not asked, and nothing is compared, without end.
func TestBoundsOfDiscovery(t *testing.T) {
	resource := func(i int) string { return fmt.Sprintf(`{"name":"r%d","kind":"R","verbs":["list"]}`, i) }
	var resources, versions []string
	for i := range 50_001 {
		resources, versions = append(resources, resource(i)), append(versions, fmt.Sprintf(`{"version":"v%d"}`, i))
	}
	aggregated := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			fmt.Fprint(w, body)
		}
	}
	served := make([]string, 101)
	for i := range served {
		served[i] = fmt.Sprintf(`{"version":"v%d","resources":[{"resource":"x","scope":"Cluster","verbs":["list"]}]}`, i)
	}
	for name, c := range map[string]struct {
		path   string
		answer http.HandlerFunc
		want   string
	}{
		"resources":       {"/api/v1", text(`{"resources":[` + strings.Join(resources, ",") + `]}`), "too many resources"},
		"versions":        {"/apis", text(`{"groups":[{"name":"g","versions":[` + strings.Join(versions, ",") + `]}]}`), "too many groups and versions"},
		"versions of one": {"/apis", aggregated(`{"items":[{"metadata":{"name":"g"},"versions":[` + strings.Join(served, ",") + `]}]}`), "x.g is served in more than 100 versions"},
		"bytes": {"/apis", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<20)); err != nil {
					return
				}
			}
		}, "larger than any may be"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.serve(c.path, c.answer)
			_, err := f.client(t, nil).Discover(t.Context())
			wantBound(t, name, err, c.want)
		})
	}
}

// TestHeads: an object with two kinds or names, or with a name that is not valid in a key and a path, is an error.
func TestHeads(t *testing.T) {
	for want, item := range map[string]string{
		"it has its metadata twice":             `{"metadata":{"name":"x","namespace":"a"},"metadata":{"name":"y","namespace":"a"}}`,
		"it has its name twice":                 `{"metadata":{"name":"x","namespace":"a","n\u0061me":"y"}}`,
		"it has its kind twice":                 `{"kind":"ConfigMap","kind":"ConfigMap","metadata":{"name":"x","namespace":"a"}}`,
		`no object can have the name ""`:        `{"Metadata":{"name":"x","namespace":"a"}}`,
		`the name "a?b"`:                        `{"metadata":{"name":"a\u0000b","namespace":"a"}}`,
		`in namespace "a b"`:                    `{"metadata":{"name":"x","namespace":"a\nb"}}`,
		`the name "nnnnnnnn`:                    `{"metadata":{"name":"` + strings.Repeat("n", 3000) + `","namespace":"a"}}`,
		"name: json:":                           `{"metadata":{"name":7,"namespace":"a"}}`,
		"or its metadata, is not a JSON object": `{"metadata":[]}`,
	} {
		f := newFake(t)
		f.serve(maps, text(`{"metadata":{"resourceVersion":"1"},"items":[`+item+`]}`))
		_, _, err := collect(t, f.client(t, nil), remote.Options{})
		var malformed *remote.MalformedError
		if !errors.As(err, &malformed) || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%s: the error is %v, want one with %q", item, err, want)
		}
	}
}

// TestReasonPhrase: also the first line of an answer is not for a terminal.
func TestReasonPhrase(t *testing.T) {
	f := newFake(t)
	f.serve(maps, func(w http.ResponseWriter, _ *http.Request) {
		c, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = buf.WriteString("HTTP/1.1 418 a\x1b]0;owned\x07b\r\nContent-Length: 0\r\n\r\n")
		_ = buf.Flush() // the client reports the result
	})
	_, _, err := collect(t, f.client(t, nil), remote.Options{})
	if err == nil || !strings.Contains(err.Error(), "a?]0;owned?b") || strings.ContainsAny(err.Error(), "\x1b\x07") {
		t.Errorf("the error is %q", err)
	}
}

// TestMeanwhile: a definition that is deleted while others are read, and one that discovery
// does not show, are named; a resource in discovery that the server then answers with 404 is an error.
func TestMeanwhile(t *testing.T) {
	f := newFake(t)
	groups := func(names ...string) http.HandlerFunc {
		var list []string
		for _, n := range names {
			list = append(list, fmt.Sprintf(`{"name":%q,"versions":[{"version":"v1"}]}`, n))
		}
		return text(`{"groups":[` + strings.Join(list, ",") + `]}`)
	}
	f.serve("/apis", inTurn(groups("apiextensions.k8s.io", "example.com"), groups("apiextensions.k8s.io")))
	f.serve("/apis/apiextensions.k8s.io/v1", text(`{"resources":[{"name":"customresourcedefinitions","kind":"CustomResourceDefinition","verbs":["list"]}]}`))
	f.serve("/apis/example.com/v1", text(`{"resources":[{"name":"widgets","kind":"Widget","verbs":["list"]}]}`))
	f.serve("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", text(`{"metadata":{"resourceVersion":"4"},"items":[{"metadata":{"name":"late.example.com","resourceVersion":"3"},"spec":{"group":"example.com","names":{"plural":"late"},"versions":[{"name":"v1","served":true,"storage":true}]}}]}`))
	f.serve(maps, text(configMaps("9", "", "x")))
	all, got, err := collect(t, f.client(t, nil), remote.Options{})
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	for resource, reason := range map[string]string{"widgets.example.com": "its definition was deleted meanwhile", "late.example.com": "was not served when reading began"} {
		if !slices.ContainsFunc(got.Skipped, func(l remote.Skipped) bool { return l.Resource == resource && strings.Contains(l.Reason, reason) }) {
			t.Errorf("%s is not named: %v", resource, got.Skipped)
		}
	}
	f.serve(maps, http.NotFound)
	if _, _, err := collect(t, f.client(t, nil), remote.Options{}); !remote.Is(err, http.StatusNotFound) || !strings.Contains(err.Error(), "listing configmaps") {
		t.Errorf("a resource that is there and is not: %v", err)
	}
}

// TestBlind: to a user who may not see which groups other servers keep, metrics that do not
// answer are no reason to end, and anything else is, before anything is read.
func TestBlind(t *testing.T) {
	f := newFake(t)
	f.serve("/apis", text(`{"groups":[{"name":"apiregistration.k8s.io","versions":[{"version":"v1"}]},{"name":"metrics.k8s.io","versions":[{"version":"v1beta1"}]}]}`))
	f.serve("/apis/apiregistration.k8s.io/v1", text(`{"resources":[{"name":"apiservices","kind":"APIService","verbs":["list"]}]}`))
	f.serve("/apis/apiregistration.k8s.io/v1/apiservices", refuse(http.StatusForbidden, "no", 0))
	f.serve("/apis/metrics.k8s.io/v1beta1", refuse(http.StatusNotFound, "no", 0))
	f.serve(maps, text(configMaps("9", "", "x")))
	all, got, err := collect(t, f.client(t, nil), remote.Options{SkipForbidden: true})
	if err != nil || len(all) != 1 || len(got.Skipped) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	before := f.times(maps)
	f.serve("/apis", text(`{"groups":[{"name":"lost.io","versions":[{"version":"v1"}]}]}`))
	if _, _, err := collect(t, f.client(t, nil), remote.Options{SkipForbidden: true}); err == nil || !strings.Contains(err.Error(), "lost.io/v1") || f.times(maps) != before {
		t.Errorf("a lost group: %v, after %d lists", err, f.times(maps)-before)
	}
}

// TestSealed: the files of the folder do not contain the objects in plain text, and others cannot open them; a
// file that was created under the same name since is left alone.
func TestSealed(t *testing.T) {
	dir := t.TempDir()
	var s *remote.Spool
	var err error
	if s, err = remote.NewSpool(dir, 1<<20, 0); err != nil {
		t.Fatal(err)
	}
	r := remote.Resource{Version: "v1", Name: "secrets", Kind: "Secret", Namespaced: true}
	object := func(name string) remote.Object {
		return remote.Object{Resource: r, JSON: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"namespace":"a"},"data":{"k":"OPENSESAME"}}`, name)}
	}
	filling := s.Open(r)
	put := func(names ...string) {
		for _, name := range names {
			if err := filling.Put(object(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("lost", "lost too")
	if err := filling.Begin(); err != nil { // and what came is forgotten
		t.Fatal(err)
	}
	put("z", "y", "x")
	if err := filling.Close(remote.Listed{Objects: 3}); err != nil {
		t.Fatal(err)
	}
	raw := remote.RawFile(t, s)
	if len(raw) == 0 || strings.Contains(string(raw), "OPENSESAME") || strings.Contains(string(raw), "Secret") {
		t.Errorf("the file holds %q", raw)
	}
	var names []string
	for o, err := range s.Ordered(func(o remote.Object) (string, error) { return o.Name, nil }) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, o.Name)
	}
	for o, err := range s.Objects(s.Sections()[0]) {
		if err != nil || !strings.Contains(string(o.JSON), "OPENSESAME") {
			t.Fatalf("%s, %v", o.JSON, err)
		}
		names = append(names, o.Name)
	}
	if got := strings.Join(names, " "); got != "x y z z y x" {
		t.Errorf("it holds %s", got)
	}
	squatter := filepath.Join(dir, filepath.Base(remote.FileName(s)))
	if err := os.Mkdir(squatter, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("a folder by the name of the file: %v", err)
	}
	if _, err := os.Stat(squatter); err != nil {
		t.Errorf("a file of another user was removed: %v", err)
	}
}

// TestOrderIsBounded: the names of objects that are to be given in order take so much memory.
func TestOrderIsBounded(t *testing.T) {
	f := newFake(t)
	f.serve(maps, text(configMaps("9", "", "a", "b", "c")))
	_, got, err := collect(t, f.client(t, func(cfg *remote.Config) { cfg.Index = 150 }), remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", strings.Repeat("n", 50)} {
		for _, err = range got.Ordered(func(remote.Object) (string, error) { return name, nil }) {
			if err != nil {
				break
			}
		}
		if name == "" && err != nil {
			t.Errorf("three short names: %v", err)
		}
	}
	wantBound(t, "three long names", err, "take more than 150 bytes of memory")
}
