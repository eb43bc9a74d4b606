package applytest_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// standardOwnership is a server that leaves the owners of fields to the library.
func standardOwnership(c *server.Config) { c.StandardOwnership = true }

// TestRecordedAnswersStandard replays recorded applies with the library alone. The other tests of recorded
// answers use plans.
func TestRecordedAnswersStandard(t *testing.T) {
	servertest.RecordedBy(t, standardOwnership,
		"protocol-apply-*", "protocol-patch-*", "protocol-flow-kubectl-apply", "core-apply-core", "effect-apply-create", "groups-deploy-apply")
}

// TestRecordedAnswersPlanned replays them with plans.
func TestRecordedAnswersPlanned(t *testing.T) {
	servertest.Recorded(t, "protocol-apply-*", "protocol-patch-*", "protocol-fieldvalidation-patch", "protocol-flow-kubectl-apply", "effect-apply-create")
}

var implementationLine = regexp.MustCompile(`(?m)^(rowlock_apply_[a-z_]+)\{implementation="([a-z]+)"\} (\d+)$`)

// TestImplementationsAreCounted: metrics count the uses of each implementation, and the flag chooses it.
func TestImplementationsAreCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		option func(*server.Config)
		want   []string // what one create and two patches add
	}{
		"usual": {func(*server.Config) {}, []string{
			"rowlock_apply_ownership_total planned 3"}},
		"standard": {standardOwnership, []string{
			"rowlock_apply_ownership_total standard 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t, servertest.Idle, tc.option)
			counts := func() map[string]int {
				out := map[string]int{}
				for _, m := range implementationLine.FindAllStringSubmatch(string(s.Must("GET", "/metrics", "")), -1) {
					var n int
					_, _ = fmt.Sscan(m[3], &n)
					out[m[1]+" "+m[2]] = n
				}
				return out
			}
			s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`)
			before := counts()
			s.Must("POST", "/api/v1/namespaces/n/configmaps", `{"metadata":{"name":"c","finalizers":["x/a","x/b"]},"data":{"a":"1"}}`)
			path, strategic := "/api/v1/namespaces/n/configmaps/c", []string{"Content-Type", "application/strategic-merge-patch+json"}
			s.Must("PATCH", path, `{"data":{"b":"2"}}`, strategic...)
			got := s.Must("PATCH", path, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/a"]}}`, strategic...)
			if !strings.Contains(string(got), `"finalizers":["x/b"]`) {
				t.Errorf("%s", got)
			}
			var added []string
			for name, n := range counts() {
				if n -= before[name]; n > 0 {
					added = append(added, fmt.Sprint(name, " ", n))
				}
			}
			slices.Sort(added)
			if diff := cmp.Diff(tc.want, added); diff != "" {
				t.Error(diff)
			}
			if missing := 3 - len(slices.Collect(maps.Keys(before))); missing != 0 {
				t.Errorf("%d of the three implementations are not shown before their first use", missing)
			}
		})
	}
}
