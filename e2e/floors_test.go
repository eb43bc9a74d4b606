package e2e

import (
	"slices"
	"strings"
	"testing"
)

// floors are the packages inside server/, the lowest floor first. A package imports packages on lower floors
// and, on its own floor, those with the same first name below server/. An entry includes the packages below
// it, unless they have an entry of their own. The packages on the first floor import no others.
var floors = [][]string{
	{"fair", "removed", "schema/merging", "wire"},
	{"release"},
	{"audit", "datadir", "direct", "expr", "gates", "h1stream", "h2", "heap", "history", "metrics/scrape", "permits", "ratelog", "contention", "election", "relay", "tracing", "webhook"},
	{"egress", "health", "request"},
	{"kinds", "kinds/rules", "status"},
	{"admission", "kinds/columns", "schema", "integrity"},
	{"apply", "cache", "kinds/*"},
	{"convert", "discovery", "follow", "objects"},
	{"admission/*", "answers", "apply/internal", "aggregator", "definitions", "flow", "transfer"},
	{"access", "admission/plugins", "controllers", "filters", "watches", "writes"},
	{"metrics", "verbs"},
	{"verbs/*"},
	{""}, // server itself
	{"servertest", "embed"},
	{"rowlocktest"},
}

// floorOf finds the floor of a package by its path below server/; -1: none is listed.
func floorOf(path string) int {
	for dir := path; ; {
		for i, floor := range floors {
			if slices.Contains(floor, dir) || dir != "" && strings.Contains(dir, "/") && slices.Contains(floor, dir[:strings.LastIndexByte(dir, '/')]+"/*") {
				return i
			}
		}
		i := strings.LastIndexByte(dir, '/')
		if i < 0 {
			return -1
		}
		dir = dir[:i]
	}
}

// misplaced returns why one package of server/ may not import another.
func misplaced(from, to string) string {
	room := func(path string) string { first, _, _ := strings.Cut(path, "/"); return first }
	mine, theirs := floorOf(from), floorOf(to)
	switch {
	case mine < 0:
		return "floors in e2e/floors_test.go has no place for the package that imports"
	case theirs < 0:
		return "floors in e2e/floors_test.go has no place for the package that is imported"
	case theirs > mine:
		return "it is on a floor above"
	case theirs == mine && room(from) != room(to):
		return "it is another room on the same floor"
	}
	return ""
}

// inServer returns a package's path below server/; ok is false for one that is not there.
func inServer(path string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, "server")
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return strings.TrimPrefix(rest, "/"), true
}

func TestFloors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"cache", "kinds", true}, {"kinds", "cache", false}, {"verbs", "objects", true}, {"objects", "verbs", false},
		{"verbs/reviews", "verbs", true}, {"verbs", "verbs/reviews", false}, {"watches", "answers", true}, {"answers", "watches", false},
		{"kinds/core", "kinds/podspec", true}, {"kinds/core", "cache", false}, {"kinds/pods/deep", "kinds/columns", true},
		{"admission/policy", "follow", true}, {"admission/policy", "answers", false}, {"", "verbs", true}, {"verbs", "", false},
		{"nowhere", "kinds", false}, {"verbs", "nowhere", false}, {"follow", "objects", false},
	} {
		if reason := misplaced(c.from, c.to); (reason == "") != c.ok {
			t.Errorf("%s may import %s: %q", c.from, c.to, reason)
		}
	}
}
