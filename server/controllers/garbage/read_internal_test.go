package garbage

import (
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
)

func TestState(t *testing.T) {
	for want, list := range map[graph.State][]cache.OwnerInfo{
		0:                {{}, {Foreground: true}, {Orphan: true}, {Deleting: true}},
		graph.Foreground: {{Deleting: true, Foreground: true}},
		graph.Orphaning:  {{Deleting: true, Orphan: true}, {Deleting: true, Foreground: true, Orphan: true}},
	} {
		for _, info := range list {
			if got := stateOf(info); got != want {
				t.Errorf("%+v is %v, want %v", info, got, want)
			}
		}
	}
}
