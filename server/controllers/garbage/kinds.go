package garbage

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
	"github.com/rowlock/rowlock/server/kinds"
)

// kindNumbers assigns numbers to storages for the graph, from 1 on.
type kindNumbers struct {
	names  map[uint32]*kindName
	number map[string]uint32 // by storage
	last   uint32
}

// kindName is the entry of a storage, which stays as long as the graph has an object of it, served or not: a dependent may
// name an owner whose kind was removed with it.
type kindName struct {
	storage string
	gvks    []schema.GroupVersionKind // under which it was served since it is numbered
}

// maxNames limits the remembered names of a storage: clients can change definitions repeatedly.
const maxNames = 32

// numberOf numbers the storage of a resource, and remembers under which name that is served.
func (k *kindNumbers) numberOf(r *kinds.Resource) uint32 {
	storage := r.Storage.Key
	if n, ok := k.number[storage]; ok {
		if name := k.names[n]; !slices.Contains(name.gvks, r.GVK()) {
			name.gvks = append(name.gvks[max(0, len(name.gvks)+1-maxNames):], r.GVK())
		}
		return n
	}
	if k.names == nil {
		k.names, k.number = map[uint32]*kindName{}, map[string]uint32{}
	}
	for k.last++; k.names[k.last&(1<<24-1)] != nil || k.last&(1<<24-1) == 0; k.last++ { // numbers start again after this many definitions
	}
	n := k.last & (1<<24 - 1)
	k.names[n], k.number[storage] = &kindName{storage, []schema.GroupVersionKind{r.GVK()}}, n
	return n
}

// forget releases the number of a storage that the graph has no object of.
func (k *kindNumbers) forget(n uint32, g *graph.Graph) bool {
	if g.Uses(n) {
		return false
	}
	delete(k.number, k.names[n].storage)
	delete(k.names, n)
	return true
}

// collectable reports whether objects of a resource can be garbage.
func collectable(r *kinds.Resource) bool {
	return r.Storage != nil && !r.Storage.ForbidFinalizeOrphans &&
		slices.Contains(r.Verbs, "delete") && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
}
