package server_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// shownBy returns the objects that an answer shows, as "storage/namespace/name".
func shownBy(answer string) (list []string) {
	for _, found := range markers.FindAllStringSubmatch(answer, -1) {
		list = append(list, found[1])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// token makes the token of a list that goes on behind a key.
func token(revision int64, start string) string {
	data, err := json.Marshal(map[string]any{"v": "meta.k8s.io/v1", "rv": revision, "start": start})
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// TestTokensStayInside: a continue token determines where a list continues, and never what it contains,
// whatever its origin and content.
func TestTokensStayInside(t *testing.T) {
	c := newCluster(t)
	next := func(path string) string {
		var list struct {
			Metadata struct{ Continue string }
		}
		if err := json.Unmarshal(c.must("GET", path, ""), &list); err != nil || list.Metadata.Continue == "" {
			t.Fatalf("%s: no token: %v", path, err)
		}
		return list.Metadata.Continue
	}
	tokens := []string{
		next("/api/v1/secrets?limit=1"), next("/api/v1/secrets?limit=2"), next("/api/v1/namespaces/a/secrets?limit=1"),
		next("/api/v1/configmaps?limit=1"), next("/api/v1/namespaces?limit=1"), next("/apis/rights.example/v1/widgets?limit=1"),
	}
	for _, start := range []string{
		"a/x\x00", "b/", "b/a\x00", "x\x00", "b", "a", "../b/a", "a/../b/a", "..", "/b/x", "b/x\x00", "secrets/b/a", "\x00", "a/x/../../b/a", "%2e%2e/b/a", "a\x00/x", "b\x00",
	} {
		for _, revision := range []int64{-1, c.s.Cache.Revision(), 1} {
			tokens = append(tokens, token(revision, start))
		}
	}
	for _, u := range []struct {
		has   right
		query string
		may   []string
	}{
		{right{verb: "list", resource: "secrets", namespace: "a"}, "?limit=1&continue=", []string{"secrets/a/x", "secrets/a/y"}},
		{right{verb: "list", resource: "secrets", namespace: "a"}, "?continue=", []string{"secrets/a/x", "secrets/a/y"}},
		{right{verb: "list", resource: "secrets", namespace: "a", names: []string{"x"}}, "?fieldSelector=metadata.name%3Dx&limit=1&continue=", []string{"secrets/a/x"}},
		{right{verb: "list", resource: "secrets", namespace: "a", names: []string{"x"}}, "?fieldSelector=metadata.name%3Dx&continue=", []string{"secrets/a/x"}},
		{right{verb: "deletecollection", resource: "secrets", namespace: "a"}, "?dryRun=All&continue=", []string{"secrets/a/x", "secrets/a/y"}},
	} {
		answered := 0
		for _, token := range tokens {
			c.may(u.has)
			path, method := "/api/v1/namespaces/a/secrets"+u.query+url.QueryEscape(token), "GET"
			if u.has.verb == "deletecollection" {
				method = "DELETE"
			}
			w := c.do(context.Background(), method, path, "", "")
			for _, shown := range shownBy(w.Body.String()) {
				if !slices.Contains(u.may, shown) {
					t.Errorf("%+v: %s shows %s", u.has, path, shown)
				}
				answered++
			}
			if w.Code == 403 || w.Code >= 500 && w.Code != 504 {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		if answered == 0 {
			t.Errorf("%+v: no token shows anything", u.has)
		}
	}
}

// TestVersionsStayInside: reading past versions shows no more than reading the present.
func TestVersionsStayInside(t *testing.T) {
	c := newCluster(t)
	then := c.s.Cache.Revision()
	for _, ns := range []string{"a", "b"} {
		for _, name := range []string{"x", "y"} {
			c.do(context.Background(), "DELETE", "/api/v1/namespaces/"+ns+"/secrets/"+name, "", "", "Master", "yes")
		}
	}
	exact := fmt.Sprintf("resourceVersion=%d&resourceVersionMatch=Exact", then)
	for _, u := range []struct {
		has  right
		path string
		want string
	}{
		{right{verb: "list", resource: "secrets", namespace: "a"}, "/api/v1/namespaces/a/secrets?" + exact, "secrets/a/x secrets/a/y"},
		{right{verb: "list", resource: "secrets", namespace: "a"}, "/api/v1/secrets?fieldSelector=metadata.namespace%3Da&" + exact, ""},
		{right{verb: "list", resource: "secrets", names: []string{"x"}}, "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dx&" + exact, "secrets/a/x"},
		{right{verb: "list", resource: "secrets", names: []string{"x"}}, "/api/v1/secrets?fieldSelector=metadata.name%3Dx&" + exact, "secrets/a/x secrets/b/x"},
		{right{verb: "list", resource: "secrets", names: []string{"x"}}, "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dy&" + exact, ""},
		{right{verb: "list", resource: "secrets", names: []string{"x"}}, "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%21%3Dy&" + exact, ""},
		{right{verb: "list", resource: "secrets", names: []string{"x"}}, "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dx&fieldSelector=metadata.name%3Dy&" + exact, "secrets/a/x"},
		{right{verb: "get", resource: "secrets"}, "/api/v1/namespaces/a/secrets/x?" + exact, ""},
		{right{verb: "watch", resource: "secrets", namespace: "a"}, fmt.Sprintf("/api/v1/namespaces/a/secrets?watch=1&resourceVersion=%d", then), "secrets/a/x secrets/a/y"},
		{right{verb: "watch", resource: "secrets", names: []string{"x"}}, fmt.Sprintf("/api/v1/namespaces/a/secrets?watch=1&fieldSelector=metadata.name%%3Dx&resourceVersion=%d", then), "secrets/a/x"},
		{right{verb: "watch", resource: "secrets", names: []string{"x"}}, fmt.Sprintf("/api/v1/watch/namespaces/a/secrets/x?resourceVersion=%d", then), "secrets/a/x"},
		{right{verb: "watch", resource: "secrets", names: []string{"x"}}, fmt.Sprintf("/api/v1/watch/namespaces/a/secrets?fieldSelector=metadata.name%%3Dx&resourceVersion=%d", then), ""},
	} {
		c.may(u.has)
		w := c.do(context.Background(), "GET", u.path, "", "")
		if got := strings.Join(shownBy(w.Body.String()), " "); got != u.want {
			t.Errorf("%+v: %s shows %q, want %q (%d)", u.has, u.path, got, u.want, w.Code)
		}
	}
}

// TestRefusalsShowNothing: the answer to a failed write contains nothing that the client may not
// read.
func TestRefusalsShowNothing(t *testing.T) {
	c := newCluster(t)
	c.must("PUT", "/api/v1/namespaces/a/configmaps/x", `{"metadata":{"name":"x","annotations":{"mark":"marker{configmaps/a/x}"}},"immutable":true,"data":{"a":"marker{configmaps/a/data}"}}`)
	for _, f := range []form{
		{method: "POST", path: "/api/v1/namespaces/a/configmaps", as: inJSON, body: text(`{"metadata":{"name":"x"},"data":{"a":"c"}}`), needs: []need{{"create", "configmaps", ""}}},
		{method: "POST", path: "/api/v1/namespaces/a/configmaps?dryRun=All", as: inJSON, body: text(`{"metadata":{"name":"x"}}`), needs: []need{{"create", "configmaps", ""}}},
		{method: "POST", path: "/api/v1/namespaces/a/serviceaccounts/x/token", as: inJSON, needs: []need{{"create", "serviceaccounts/token", ""}},
			body: text(`{"spec":{"boundObjectRef":{"kind":"Secret","apiVersion":"v1","name":"x","uid":"other"}}}`)},
		{method: "POST", path: "/api/v1/namespaces/a/pods/x/binding", as: inJSON, needs: []need{{"create", "pods/binding", ""}},
			body: text(`{"metadata":{"name":"x","uid":"other"},"target":{"name":"n"}}`)},
		{method: "POST", path: "/api/v1/namespaces/a/pods/x/eviction", as: inJSON, needs: []need{{"create", "pods/eviction", ""}},
			body: text(`{"metadata":{"name":"x"},"deleteOptions":{"preconditions":{"resourceVersion":"1"}}}`)},
		{method: "POST", path: "/api/v1/namespaces/a/pods/x/eviction", as: inJSON, needs: []need{{"create", "pods/eviction", ""}},
			body: text(`{"metadata":{"name":"x"},"deleteOptions":{"ignoreStoreReadErrorWithClusterBreakingPotential":true}}`)},
	} {
		n := f.needs[0]
		c.may(right{verb: n.verb, resource: n.resource})
		w := c.do(context.Background(), f.method, f.path, f.as, f.body())
		if shown := shownBy(w.Body.String()); len(shown) > 0 || w.Code < 300 && n.resource != "pods/eviction" {
			t.Errorf("%s %s: %d shows %v: %s", f.method, f.path, w.Code, shown, w.Body)
		}
	}
}
