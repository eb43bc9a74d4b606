//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	ownedNamespace = "owned"
	owned          = "/api/v1/namespaces/" + ownedNamespace + "/configmaps"
)

// collectorTime is some more than the garbage collector takes to react.
const collectorTime = 2 * time.Second

// ownerKind is a kind of owners.
type ownerKind struct {
	apiVersion, kind, collection string
	key                          history.Key
	more                         string // of a new object
}

// ownerKinds are one that is in the namespace of the dependents, and one that is in none.
var ownerKinds = []ownerKind{
	{"v1", "ConfigMap", owned, history.Key{Resource: configMaps.resource, Namespace: ownedNamespace}, ""},
	{"scheduling.k8s.io/v1", "PriorityClass", "/apis/scheduling.k8s.io/v1/priorityclasses", history.Key{Resource: "priorityclasses.scheduling.k8s.io"}, `,"value":1`},
}

// owner is an object with dependents, which the garbage collector deletes after it.
type owner struct {
	ownerKind
	name, uid  string
	dependents []*history.Life
	deleted    string // the body of its delete
}

// owners makes owners with dependents, and deletes them with each propagation policy. An owner whose name another one gets at once is
// gone nevertheless. Dependents that have another owner, or are orphaned, stay.
func (c *client) owners(ctx context.Context) {
	keeper := fmt.Sprintf("%s-r%d-keeper", c.name, c.round)
	for turn := 0; ctx.Err() == nil; turn++ {
		of := ownerKinds[(turn+c.round)%2]
		kept, ok := c.own(ctx, ownerKinds[0], keeper, 0, nil)
		if !ok {
			continue
		}
		name := fmt.Sprintf("%s-r%d-%d", c.name, c.round, turn)
		first, ok := c.own(ctx, of, name, 2, nil)
		if !ok || !c.disown(ctx, first, "Background", len(first.dependents)) {
			continue
		}
		second, ok := c.own(ctx, of, name, 2, kept)
		if !ok || !c.collected(ctx, first, len(first.dependents)) {
			continue
		}
		policy, going := []string{"Background", "Foreground", "Orphan"}[turn%3], len(second.dependents)-1 // the last has another owner
		if policy == "Orphan" {
			going = 0
		}
		if !c.disown(ctx, second, policy, going) || !c.collected(ctx, second, going) || !c.absent(ctx, second.path(), second.path(), second.deleted) {
			continue
		}
		sleep(ctx, collectorTime) // in which the others go if the collector is wrong
		for _, l := range second.dependents[going:] {
			l.Until, l.Why = c.rec.Now(), "its client deletes it"
			c.must(ctx, c, http.MethodDelete, owned+"/"+l.Key.Name, "", http.StatusOK, http.StatusNotFound)
		}
	}
}

// path returns the path of the owner.
func (o *owner) path() string { return o.collection + "/" + o.name }

// own makes an owner, and dependents of it; with another owner, one more that belongs to both. It is not done if the owner is not
// found, as after a loss.
func (c *client) own(ctx context.Context, of ownerKind, name string, dependents int, other *owner) (*owner, bool) {
	made, found := fmt.Sprintf(`{"metadata":{"name":%q}%s}`, name, of.more), struct{ Metadata struct{ UID string } }{}
	if _, _, ok := c.must(ctx, c, http.MethodPost, of.collection, made, http.StatusCreated, http.StatusConflict); !ok {
		return nil, false
	}
	code, answer, ok := c.must(ctx, c, http.MethodGet, of.collection+"/"+name, "", http.StatusOK, http.StatusNotFound)
	if !ok || code != http.StatusOK || json.Unmarshal(answer, &found) != nil {
		return nil, false
	}
	o := &owner{ownerKind: of, name: name, uid: found.Metadata.UID}
	if other != nil {
		dependents++
	}
	for i := range dependents {
		l := &history.Life{Key: history.Key{Resource: configMaps.resource, Namespace: ownedNamespace, Name: fmt.Sprintf("%s-%.8s-%d", name, o.uid, i)}, Until: math.MaxInt64, Why: "never"}
		references := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"blockOwnerDeletion":%v}`, of.apiVersion, of.kind, o.name, o.uid, i == 0)
		if other != nil && i == dependents-1 {
			references += fmt.Sprintf(`,{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q}`, other.name, other.uid)
		}
		c.rec.Add(l)
		o.dependents = append(o.dependents, l)
		if _, _, ok := c.must(ctx, c, http.MethodPost, owned, fmt.Sprintf(`{"metadata":{"name":%q,"ownerReferences":[%s]}}`, l.Key.Name, references), http.StatusCreated, http.StatusConflict); !ok {
			return nil, false
		}
	}
	return o, true
}

// disown deletes an owner, with which some of its dependents may go.
func (c *client) disown(ctx context.Context, o *owner, policy string, some int) bool {
	for i, l := range o.dependents[:some] {
		if l.Until, l.Why = c.rec.Now(), "its owner is deleted"; policy == "Foreground" && i == 0 { // the one that blocks
			before := o.key
			before.Name = o.name
			l.Before = &before
		}
	}
	o.deleted = fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":%q,"preconditions":{"uid":%q}}`, policy, o.uid)
	_, _, ok := c.must(ctx, c, http.MethodDelete, o.path(), o.deleted, http.StatusOK, http.StatusNotFound, http.StatusConflict)
	return ok
}

// collected waits until some dependents of an owner that was deleted are gone.
func (c *client) collected(ctx context.Context, o *owner, some int) bool {
	for _, l := range o.dependents[:some] {
		if !c.absent(ctx, owned+"/"+l.Key.Name, o.path(), o.deleted) {
			return false
		}
	}
	return true
}
