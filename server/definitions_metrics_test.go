package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// definitionsPath is the path of CustomResourceDefinitions.
const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// turn creates a definition of its own group, uses its resource, and returns its name and path.
func turn(t *testing.T, s *servertest.Server, plural string) (name, path string) {
	t.Helper()
	group := plural + ".example.com"
	name, path = plural+"."+group, "/apis/"+group+"/v1/namespaces/default/"+plural
	kind := strings.ToUpper(plural[:1]) + plural[1:]
	s.Must("POST", definitionsPath, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"group":%q,"scope":"Namespaced","names":{"kind":%q,"plural":%q},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`, name, group, kind, plural))
	servertest.Eventually(t, func() bool { return s.Do("GET", path, "").Code == http.StatusOK })
	s.Must("POST", path, fmt.Sprintf(`{"apiVersion":"%s/v1","kind":%q,"metadata":{"name":"one"}}`, group, kind))
	s.Must("GET", path+"/one", "")
	return name, path
}

// TestMetricsOfDefinitions: the series of custom resources go with their definitions, and others stay.
func TestMetricsOfDefinitions(t *testing.T) {
	for _, release := range []string{"1.32", "1.36"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			s := servertest.Start(t, servertest.Complete(t, "--emulated-version="+release))
			_, stays := turn(t, s, "stays")
			goes, path := turn(t, s, "goes")
			s.Must("GET", path+"?watch=1&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan", "")
			series := func(text string) (lines []string) {
				for line := range strings.Lines(string(s.Must("GET", "/metrics", ""))) {
					if line[0] != '#' && strings.Contains(strings.ToLower(line), text) {
						lines = append(lines, line)
					}
				}
				return lines
			}
			had := series(`"goes`)
			names := map[string]bool{}
			for _, line := range had {
				name, _, _ := strings.Cut(line, "{")
				names[name] = true
			}
			for _, want := range []string{"apiserver_request_total", "apiserver_request_duration_seconds_bucket", "apiserver_request_sli_duration_seconds_bucket", "apiserver_response_sizes_bucket",
				"apiserver_longrunning_requests", "apiserver_watch_events_total", "apiserver_watch_events_sizes_bucket", "apiserver_watch_list_duration_seconds_bucket", "apiserver_storage_objects", "rowlock_watchers"} {
				if !names[want] {
					t.Errorf("%s does not name the resource, of which there are %d series", want, len(had))
				}
			}
			s.Must("DELETE", definitionsPath+"/"+goes, "")
			servertest.Eventually(t, func() bool { return s.Do("GET", path, "").Code == http.StatusNotFound })
			servertest.Eventually(t, func() bool { return len(series(`"goes`)) == 0 })
			s.Must("GET", stays+"/one", "")
			found := false
			for _, line := range series(`resource="stays"`) {
				found = found || strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `scope="resource"`) && strings.Contains(line, `verb="GET"`) && strings.HasSuffix(line, " 2\n")
			}
			if !found {
				t.Errorf("two gets of a resource that stays are not counted:\n%s", strings.Join(series(`resource="stays"`), ""))
			}
		})
	}
}

// TestMetricsWithoutScrapes: series of removed resources are bounded even if metrics are never read.
func TestMetricsWithoutScrapes(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, servertest.Complete(t))
	left := func() int {
		families, err := s.Metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		resources := map[string]bool{}
		for _, f := range families {
			for _, m := range f.Metric {
				for _, l := range m.Label {
					if l.GetName() == "group" && strings.HasPrefix(l.GetValue(), "turn") {
						resources[l.GetValue()] = true
					}
				}
			}
		}
		return len(resources)
	}
	for i := range 40 {
		name, path := turn(t, s, fmt.Sprintf("turn%d", i))
		s.Must("DELETE", definitionsPath+"/"+name, "")
		servertest.Eventually(t, func() bool { return s.Do("GET", path, "").Code == http.StatusNotFound })
	}
	if n := left(); n > 18 {
		t.Errorf("%d of 40 resources that are gone have series", n)
	}
}
