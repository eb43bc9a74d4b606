package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server/cache/shard"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestShards: of two shards each has the objects of its hashes, in lists, pages, tables, watches and deletions.
func TestShards(t *testing.T) {
	t.Parallel()
	const (
		maps  = "/api/v1/namespaces/default/configmaps"
		first = "shardRange(object.metadata.uid,'0x0000000000000000',\"0x8000000000000000\")"
		shown = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
		other = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
		count = 24
	)
	of := func(text string) string { return "shardSelector=" + url.QueryEscape(text) }
	s := servertest.Start(t, servertest.Complete(t, "--emulated-version=1.36", "--feature-gates=ShardedListAndWatch=true"))
	low, err := shard.Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	type item struct {
		Metadata struct {
			Name, UID, ResourceVersion string
			Labels                     map[string]string
		}
	}
	var want [2][]string
	create := func(name string) {
		var made item
		if err := json.Unmarshal(s.Must("POST", maps, `{"metadata":{"name":"`+name+`","labels":{"set":"x"}}}`), &made); err != nil {
			t.Fatal(err)
		}
		at := 1
		if low.Selects(made.Metadata.UID) {
			at = 0
		}
		want[at] = append(want[at], name)
	}
	for i := 0; i < count || len(want[0]) < 3 || len(want[1]) < 3; i++ {
		create(fmt.Sprintf("m%03d", i))
	}
	type list struct {
		Metadata struct {
			Continue, ResourceVersion string
			RemainingItemCount        *int
			ShardInfo                 *struct{ Selector string }
		}
		Items []item
	}
	names := func(path string, headers ...string) (out []string, all list) {
		t.Helper()
		w := s.Do("GET", path, "", headers...)
		if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		for _, it := range all.Items {
			out = append(out, it.Metadata.Name)
		}
		return out, all
	}
	same := func(what string, got, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	got, whole := names(maps + "?" + of(first))
	same("the first shard", got, want[0])
	if whole.Metadata.ShardInfo == nil || whole.Metadata.ShardInfo.Selector != shown {
		t.Errorf("shard of the answer: %v", whole.Metadata.ShardInfo)
	}
	got, _ = names(maps + "?" + of(other))
	same("the second shard", got, want[1])
	got, _ = names(maps + "?labelSelector=set%3Dx&" + of(first)) // by the index of labels, where there is one
	same("the first shard of labels", got, want[0])
	got, _ = names(maps + "?resourceVersionMatch=Exact&resourceVersion=" + whole.Metadata.ResourceVersion + "&" + of(other))
	same("the second shard as it was", got, want[1])
	both, _ := names(maps + "?" + of(first+" || "+other))
	same("both shards", both, slices.Sorted(slices.Values(slices.Concat(want[0], want[1]))))
	var paged []string
	for path := maps + "?limit=2&" + of(first); path != ""; {
		got, page := names(path)
		paged = append(paged, got...)
		switch path = ""; {
		case page.Metadata.Continue != "":
			path = maps + "?limit=2&continue=" + page.Metadata.Continue + "&" + of(first)
			if page.Metadata.RemainingItemCount == nil {
				t.Error("a page does not count the items that follow")
			}
		}
	}
	same("pages of the first shard", paged, want[0])
	for _, as := range []string{"Table", "PartialObjectMetadataList"} {
		if w := s.Do("GET", maps+"?"+of(first), "", "Accept", "application/json;v=v1;g=meta.k8s.io;as="+as); w.Code != http.StatusOK || bytes.Contains(w.Body.Bytes(), []byte("shardInfo")) {
			t.Errorf("%s: %d %s", as, w.Code, w.Body)
		}
	}

	// A watch sees changes of its shard alone.
	since := "&timeoutSeconds=1&resourceVersion=" + whole.Metadata.ResourceVersion
	s.Must("PUT", maps+"/"+want[0][0], `{"metadata":{"name":"`+want[0][0]+`","labels":{"set":"y"}}}`)
	s.Must("PUT", maps+"/"+want[1][0], `{"metadata":{"name":"`+want[1][0]+`","labels":{"set":"y"}}}`)
	s.Must("DELETE", maps+"/"+want[0][1], "")
	s.Must("DELETE", maps+"/"+want[1][1], "")
	watched := func(query string) (out []string) {
		t.Helper()
		w := s.Do("GET", maps+"?watch=1"+query, "")
		for dec := json.NewDecoder(w.Body); dec.More(); {
			var e struct {
				Type   string
				Object item
			}
			if err := dec.Decode(&e); err != nil {
				t.Fatal(err)
			}
			out = append(out, e.Type+" "+e.Object.Metadata.Name)
		}
		return out
	}
	same("a watch of the first shard", watched(since+"&"+of(first)), []string{"MODIFIED " + want[0][0], "DELETED " + want[0][1]})
	same("a watch of labels of the second shard", watched(since+"&labelSelector=set%3Dx&"+of(other)), []string{"DELETED " + want[1][0], "DELETED " + want[1][1]})
	initial := watched("&timeoutSeconds=1&labelSelector=set%3Dx&" + of(first))
	same("a watch from nothing", initial, prefixed("ADDED ", want[0][2:]))

	// The first two watches left out a changed object of the other shard, as it was and as it is, and a deleted one; the
	// third its initial objects.
	metric := func(name string) (value string) {
		t.Helper()
		_, after, _ := bytes.Cut(s.Must("GET", "/metrics", ""), []byte("\n"+name+`{group="",resource="configmaps"} `))
		line, _, _ := bytes.Cut(after, []byte("\n"))
		return string(line)
	}
	if got, want := metric("apiserver_watch_filtered_events_total"), fmt.Sprint(2*3+len(want[1])-2); got != want {
		t.Errorf("watches left out %s objects, want %s", got, want)
	}
	if got := metric("apiserver_watch_shards_total"); got != "0" {
		t.Errorf("%s sharded watches are open after all have ended", got)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+maps+"?watch=1&"+of(first), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+servertest.Token)
	open, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := metric("apiserver_watch_shards_total"); got != "1" {
		t.Errorf("%s sharded watches are open, want 1", got)
	}
	_ = open.Body.Close()
	for end := time.Now().Add(2 * time.Minute); metric("apiserver_watch_shards_total") != "0"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a watch counts although its client has gone")
		}
	}

	// A deletion of a collection takes one shard.
	s.Must("DELETE", maps+"?labelSelector=set%3Dx&"+of(first), "")
	got, _ = names(maps + "?labelSelector=set%3Dx")
	same("what is left", got, want[1][2:])

	for path, code := range map[string]int{
		maps + "?shardSelector=x": 500, maps + "?watch=1&shardSelector=x": 500, maps + "?shardSelector=x&labelSelector=a%20b%20c": 400,
		maps + "?shardSelector=x&resourceVersion=abc": 500, maps + "?shardSelector=": 200, maps + "/" + want[1][2] + "?shardSelector=x": 200,
	} {
		if w := s.Do("GET", path, ""); w.Code != code || code == 500 && !bytes.Contains(w.Body.Bytes(), []byte(`"message":"invalid shard selector: unexpected expression kind 3; expected shardRange() call or || operator","code":500`)) {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, code)
		}
	}
	if w := s.Do("DELETE", maps+"?shardSelector=x", ""); w.Code != 500 {
		t.Errorf("a deletion by an unreadable selector: %d %s", w.Code, w.Body)
	}
}

func prefixed(prefix string, list []string) (out []string) {
	for _, s := range list {
		out = append(out, prefix+s)
	}
	return out
}

// TestNoShards: without the gate, and in releases before, the parameter is none.
func TestNoShards(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"1.32", "1.36"} {
		s := servertest.Start(t, servertest.Complete(t, "--emulated-version="+release))
		if w := s.Do("GET", "/api/v1/namespaces?shardSelector=x", ""); w.Code != http.StatusOK || !bytes.Contains(w.Body.Bytes(), []byte(`"default"`)) {
			t.Errorf("%s: %d %s", release, w.Code, w.Body)
		}
	}
}
