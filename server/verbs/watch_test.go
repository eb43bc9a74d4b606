package verbs_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/servertest"
)

// A watch that accepts only lists of metadata is accepted, and ended by the first event.
func TestWatchForLists(t *testing.T) {
	s := newSite(t)
	before := s.PutConfigMaps()
	const lists = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	for _, query := range []string{"", "&resourceVersion=0", fmt.Sprint("&resourceVersion=", before)} {
		start := time.Now()
		code, _, b := s.Fetch(t, "/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=600"+query, "Accept", lists)
		if code != http.StatusOK || len(b) > 0 || time.Since(start) > 5*time.Minute {
			t.Errorf("%q: %d %q after %v", query, code, b, time.Since(start))
		}
	}
}

// TestOldPathsOfWatches: below /watch/ the options are those of a list, unless the query has others: the existing
// objects come first, without a mark of their end.
func TestOldPathsOfWatches(t *testing.T) {
	s := newSite(t)
	s.PutConfigMaps()
	now, first := s.Cache.Revision(), fmt.Sprintf("ADDED a=1@%d", s.Cache.Get("configmaps", "ns", "a").Revision)
	const old = "/api/v1/watch/namespaces/ns/configmaps?timeoutSeconds=1&fieldSelector=metadata.name%3Da"
	for _, tc := range []struct {
		query string
		code  int
		want  string
	}{
		{"&allowWatchBookmarks=true", 200, first},
		{"&allowWatchBookmarks=true&resourceVersion=0&watch=false", 200, first},
		{"&allowWatchBookmarks=true&watch=true", 200, fmt.Sprintf("%s, BOOKMARK =@%d", first, now)},
		{"&continue=x&limit=1", 200, first},
		{"&resourceVersion=0&resourceVersionMatch=NotOlderThan", 200, first},
		{"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0", 422, "sendInitialEvents is forbidden for list"},
		{"&resourceVersionMatch=Exact&watch=1", 422, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"},
	} {
		code, _, b := s.Fetch(t, old+tc.query)
		if code != tc.code || code != 200 && !strings.Contains(string(b), tc.want) {
			t.Errorf("%s: %d %s", tc.query, code, b)
		}
		if code != 200 {
			continue
		}
		if all := servertest.Events(t, b); all != tc.want {
			t.Errorf("%s: %s, want %s", tc.query, all, tc.want)
		}
	}
}

// TestWatchWithoutTime: the time of a watch with a negative timeoutSeconds is up before the first event.
func TestWatchWithoutTime(t *testing.T) {
	s := newSite(t)
	s.PutConfigMaps()
	const path = "/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds="
	for _, query := range []string{"-1", "-9223372036854775808", "-1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"} {
		if code, _, b := s.Fetch(t, path+query); code != http.StatusOK || len(b) > 0 {
			t.Errorf("%s: %d %s", query, code, b)
		}
	}
	if code, _, b := s.Fetch(t, path+"1"); code != http.StatusOK || len(b) == 0 {
		t.Errorf("with a second: %d %q", code, b)
	}
}
