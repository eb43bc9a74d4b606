package verbs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/sqlstore"
)

// callFor returns a call with a query, on a namespaced collection.
func callFor(r *kinds.Resource, rawQuery string) (*Call, bool) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, false
	}
	return &Call{
		Request: answers.Request{Resource: r, Scope: &request.Scope{}, R: httptest.NewRequest(http.MethodGet, "/", nil)},
		Info:    &request.Info{IsResource: true, Verb: "list", Group: r.Group, Version: r.Version, Resource: r.Plural, Namespace: "ns", Query: query},
	}, true
}

// sampleObject returns an object whose selectable fields all have one value.
func sampleObject(t *testing.T, r *kinds.Resource, name, value string, set labels.Set) []byte {
	t.Helper()
	obj := map[string]any{"kind": r.Kind, "apiVersion": r.APIVersion(), "metadata": map[string]any{"name": name, "namespace": "ns", "labels": set}}
	for _, f := range r.Storage.Fields {
		if len(f.Path) == 0 || f.Path[0] == "metadata" {
			continue
		}
		at := obj
		for _, step := range f.Path[:len(f.Path)-1] {
			next, ok := at[step].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[step] = next
			}
			at = next
		}
		at[f.Path[len(f.Path)-1]] = value
	}
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzSelectors compares the filter that a list makes of its parameters, for any kind,
// with the selectors of the library.
func FuzzSelectors(f *testing.F) {
	f.Add(uint(0), "labelSelector=a%3Db%2C%21c%2Cd+in+%28x%2Cy%29", "n", "v", "a", "b")
	f.Add(uint(3), "fieldSelector=metadata.name%3Dn%2Cspec.nodeName%21%3Dv", "n", "v", "a", "")
	f.Add(uint(9), "fieldSelector=status.phase%3D%3DRunning&labelSelector=a+notin+%28b%29&limit=5&resourceVersion=0", "n", "Running", "a", "b")
	f.Add(uint(40), "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=x", "", "", "", "")
	var stored []*kinds.Resource
	for _, r := range builtin.Resources() {
		if r.Storage != nil {
			stored = append(stored, r)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint, query, name, value, labelKey, labelValue string) {
		r := stored[kind%uint(len(stored))]
		c, ok := callFor(r, query)
		if !ok {
			return
		}
		o, err := parseList(c, c.Info.Query.Get("watch") != "", nil)
		if err != nil {
			return
		}
		selector := o.LabelSelector // the list forgets it once it has its filter
		if readSelectors(c, o) != nil {
			return
		}
		name, value = strings.ToValidUTF8(name, "?"), strings.ToValidUTF8(value, "?")
		set := labels.Set{strings.ToValidUTF8(labelKey, "?"): strings.ToValidUTF8(labelValue, "?")}
		item := cache.NewOwnItem(&sqlstore.Row{
			Key: sqlstore.Key{Resource: r.Storage.Key, Namespace: "ns", Name: name}, Revision: 7, Created: 7, Value: sampleObject(t, r, name, value, set),
		}, r.Storage)
		if item.Err() != nil {
			t.Fatal(item.Err())
		}
		known := fields.Set{"metadata.name": name, "metadata.namespace": "ns"}
		for i, f := range r.Storage.Fields {
			known[f.Label] = item.Meta().Fields[i]
			if len(f.Path) > 0 && f.Path[0] != "metadata" && value != "" && item.Meta().Fields[i] != value {
				t.Fatalf("%s of %s is %q, want %q", f.Label, r.Kind, item.Meta().Fields[i], value)
			}
		}
		for own, label := range r.FieldLabels {
			known[own] = known[label]
		}
		want := selector.Matches(set) && o.FieldSelector.Matches(known)
		if got := o.Filter.Match(item); got != want {
			t.Fatalf("%s ? %q: %v for labels %v, fields %v", r.Kind, query, got, set, known)
		}
		if o.Limit < 0 || revisionOf(o) < 0 {
			t.Fatalf("%q: limit %d, version %d", query, o.Limit, revisionOf(o))
		}
	})
}

// FuzzWriteOptions holds the options of writes against the library's conversion of
// the same parameters. They differ in dryRun without a value, which asks for nothing.
func FuzzWriteOptions(f *testing.F) {
	f.Add("dryRun=All&fieldManager=m&fieldValidation=Strict&force=true")
	f.Add("gracePeriodSeconds=-5&orphanDependents=0&propagationPolicy=Orphan&dryRun=")
	f.Add("propagationPolicy")
	f.Add("ignoreStoreReadErrorWithClusterBreakingPotential&gracePeriodSeconds=1e3&force=FALSE&force=1")
	pods := builtin.Resources()[0]
	f.Fuzz(func(t *testing.T, rawQuery string) {
		c, ok := callFor(pods, rawQuery)
		if !ok {
			return
		}
		q := c.Info.Query
		plain := func(o []string) []string {
			return slices.DeleteFunc(slices.Clone(o), func(v string) bool { return v == "" })
		}
		var create metav1.CreateOptions
		if err := metav1.Convert_url_Values_To_v1_CreateOptions(&q, &create, nil); err != nil {
			t.Fatal(err)
		}
		got, err := createOptions(c)
		if got == nil || !slices.Equal(got.DryRun, plain(create.DryRun)) || got.FieldManager != create.FieldManager || got.FieldValidation != create.FieldValidation {
			t.Fatalf("%q: %+v, want %+v", rawQuery, got, create)
		}
		if _, again := updateOptions(c); (err == nil) != (again == nil) {
			t.Fatalf("%q: create %v, update %v", rawQuery, err, again)
		}
		var patch metav1.PatchOptions
		if err := metav1.Convert_url_Values_To_v1_PatchOptions(&q, &patch, nil); err != nil {
			t.Fatal(err)
		}
		if got, _ := patchOptions(c, "application/apply-patch+yaml"); got == nil || !cmp.Equal(got.Force, patch.Force) {
			t.Fatalf("%q: %+v, want %+v", rawQuery, got, patch)
		}
		var del metav1.DeleteOptions
		wantErr := metav1.Convert_url_Values_To_v1_DeleteOptions(&q, &del, nil)
		gotDel, gotErr := deleteQuery(q)
		if wantErr != nil || gotErr != nil {
			if q.Get("gracePeriodSeconds") != "" && (wantErr == nil) != (gotErr == nil) {
				t.Fatalf("%q: %v, want %v", rawQuery, gotErr, wantErr)
			}
			return
		}
		del.DryRun, del.Preconditions = plain(del.DryRun), nil
		if len(del.DryRun) == 0 {
			del.DryRun = nil
		}
		if diff := cmp.Diff(&del, gotDel); diff != "" {
			t.Fatalf("%q: %s", rawQuery, diff)
		}
	})
}

// revisionOf returns the revision that options ask for, 0 where they ask for none.
func revisionOf(o *objects.ListOptions) int64 {
	revision, err := o.Revision(false)
	if err != nil {
		return 0
	}
	return revision
}
