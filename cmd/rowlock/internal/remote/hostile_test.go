package remote_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
)

const maps = "/api/v1/configmaps"

// TestHostileAnswers: whatever a server answers, collecting ends with an error that names
// the fault, without a panic and without reading forever.
func TestHostileAnswers(t *testing.T) {
	page := 0
	endless := func(w http.ResponseWriter, _ *http.Request) {
		page++
		fmt.Fprint(w, configMaps("9", fmt.Sprint("token", page), fmt.Sprint("x", page)))
	}
	emptyPages := func(w http.ResponseWriter, _ *http.Request) {
		page++
		fmt.Fprint(w, configMaps("9", fmt.Sprint("token", page)))
	}
	never := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	drip := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1",`)
		for r.Context().Err() == nil {
			fmt.Fprint(w, " ")
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
		}
	}
	flood := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","items":[{"metadata":{"name":"`)
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat("x", 1<<16))); err != nil {
				return
			}
		}
	}
	wide := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","items":[`)
		for i := 0; r.Context().Err() == nil; i++ {
			if _, err := fmt.Fprintf(w, `{"metadata":{"name":"n%d","namespace":"a","resourceVersion":"1"}},`, i); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
		bound  bool // a BoundError, else a MalformedError
	}{
		"no JSON":                  {text("<html>"), "invalid character", false},
		"cut short in a word":      {text(`{"kind":"ConfigMapList","items":[{"metadata":{"name":`), "begun 5 times", false},
		"another kind":             {text(`{"kind":"SecretList","apiVersion":"v1"}`), "ConfigMapList is expected, not SecretList", false},
		"a status":                 {text(`{"kind":"Status","status":"Success"}`), "ConfigMapList is expected, not Status", false},
		"another version":          {text(`{"kind":"ConfigMapList","apiVersion":"v2"}`), "v1 is expected, not v2", false},
		"a list":                   {text(`[]`), "is expected in a list", false},
		"items that are a word":    {text(`{"items":"x"}`), "the items are no list", false},
		"an item that is a word":   {text(`{"items":["x"]}`), "an item is no object", false},
		"an item that is null":     {text(`{"items":[null]}`), "an item is no object", false},
		"an item without a name":   {text(`{"items":[{}]}`), `the name ""`, false},
		"a path for a name":        {text(`{"items":[{"metadata":{"name":"../x","namespace":"a"}}]}`), `the name "../x"`, false},
		"a path for a namespace":   {text(`{"items":[{"metadata":{"name":"x","namespace":"a/b"}}]}`), `in namespace "a/b"`, false},
		"no namespace":             {text(`{"items":[{"metadata":{"name":"x"}}]}`), `has the namespace ""`, false},
		"an item of another kind":  {text(`{"items":[{"kind":"Secret","metadata":{"name":"x","namespace":"a"}}]}`), `is Secret of`, false},
		"no resource version":      {text(`{"kind":"ConfigMapList","apiVersion":"v1","items":[]}`), "no resourceVersion", false},
		"a version that is a word": {text(configMaps("new", "")), "the resource version new", false},
		"a version out of range":   {text(configMaps("9223372036854775807", "")), "the resource version 9223372036854775807", false},
		"more behind the end":      {text(configMaps("9", "") + "{}"), "continues after its end", false},
		"the same token again":     {text(configMaps("9", "again", "x")), "the same continue token again", true},
		"a token of a megabyte":    {text(configMaps("9", strings.Repeat("t", 1<<20), "x")), "too long", false},
		"endless pages":            {endless, "all objects together have more than", true},
		"endless empty pages":      {emptyPages, "pages that are empty", true},
		"an answer that stands":    {never, "has sent nothing for", true},
		"an answer that drips":     {drip, "takes longer than", true},
		"an endless object":        {flood, "an object has more than", true},
		"an endless list":          {wide, "the answer is larger than any may be", true},
		"deep nesting":             {text(`{"kind":"ConfigMapList","items":[` + strings.Repeat("[", 20000)), "exceeded max depth", false},
		"a redirect":               {http.RedirectHandler("/api", http.StatusFound).ServeHTTP, "302 Found", false},
		"a message for terminals":  {refuse(http.StatusTeapot, "a\x1b]0;owned\x07b", 0), "a?]0;owned?b", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.serve(maps, c.answer)
			client := f.client(t, func(cfg *remote.Config) {
				cfg.Object, cfg.Answer, cfg.Total = 1<<20, 4<<20, 100_000
				switch name { // a slow machine is not what the others are about
				case "an answer that stands":
					cfg.Silence = 2 * time.Second
				case "an answer that drips":
					cfg.Whole = 2 * time.Second
				case "an endless object", "an endless list":
					cfg.Total = 1 << 30
				}
			})
			_, _, err := collect(t, client, remote.Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "configmaps") {
				t.Fatalf("the error is %v, want one about configmaps with %q", err, c.want)
			}
			var bound *remote.BoundError
			if errors.As(err, &bound) != c.bound {
				t.Errorf("%T: %v", err, err)
			}
			if n := f.times("/api"); n != 1 {
				t.Errorf("/api was asked for %d times: a redirect was followed", n)
			}
		})
	}
}

// TestHostileDiscovery: names that would be other paths, too much and too little.
func TestHostileDiscovery(t *testing.T) {
	for name, c := range map[string]struct{ path, answer, want string }{
		"a path for a name":    {"/api/v1", `{"resources":[{"name":"..","kind":"X","verbs":["list"]}]}`, "the name .."},
		"a query for a name":   {"/api/v1", `{"resources":[{"name":"x?y","kind":"X","verbs":["list"]}]}`, "the name x?y"},
		"a path for a version": {"/api", `{"versions":["../../evil"]}`, "the name ../../evil"},
		"a path for a group":   {"/apis", `{"groups":[{"name":"a/b","versions":[{"version":"v1"}]}]}`, "the name a/b"},
		"nothing":              {"/api", `{}`, "it serves nothing"},
		"no JSON":              {"/apis", `x`, "groups"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.serve(c.path, text(c.answer))
			_, _, err := collect(t, f.client(t, nil), remote.Options{})
			var malformed *remote.MalformedError
			if !errors.As(err, &malformed) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestCredentialsStay: a redirect to another host is not followed, so that what identifies
// the user does not go there.
func TestCredentialsStay(t *testing.T) {
	called := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer other.Close()
	f := newFake(t)
	f.serve("/api", http.RedirectHandler(other.URL, http.StatusMovedPermanently).ServeHTTP)
	_, _, err := collect(t, f.client(t, nil), remote.Options{})
	if !remote.Is(err, http.StatusMovedPermanently) || called {
		t.Fatalf("the other host was called: %v; the error is %v", called, err)
	}
}
