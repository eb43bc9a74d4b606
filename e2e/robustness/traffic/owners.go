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

// owner is an object with dependents, which the garbage collector deletes after it.
type owner struct {
	name, uid  string
	dependents []*history.Life
	deleted    string // the body of its delete
}

// owners makes owners with dependents, and deletes them with each propagation policy. An owner whose name another one gets at once is
// gone nevertheless. Dependents that have another owner, or are orphaned, stay.
func (c *client) owners(ctx context.Context) {
	keeper := fmt.Sprintf("%s-r%d-keeper", c.name, c.round)
	for turn := 0; ctx.Err() == nil; turn++ {
		kept, ok := c.own(ctx, keeper, 0, nil)
		if !ok {
			continue
		}
		name := fmt.Sprintf("%s-r%d-%d", c.name, c.round, turn)
		first, ok := c.own(ctx, name, 2, nil)
		if !ok || !c.disown(ctx, first, "Background", len(first.dependents)) {
			continue
		}
		second, ok := c.own(ctx, name, 2, kept)
		if !ok || !c.collected(first, len(first.dependents)) {
			continue
		}
		policy, going := []string{"Background", "Foreground", "Orphan"}[turn%3], len(second.dependents)-1 // the last has another owner
		if policy == "Orphan" {
			going = 0
		}
		if !c.disown(ctx, second, policy, going) || !c.collected(second, going) || !c.absent(owned+"/"+name, owned+"/"+name, second.deleted) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(collectorTime): // in which the others go if the collector is wrong
		}
		for _, l := range second.dependents[going:] {
			l.Until, l.Why = c.rec.Now(), "its client deletes it"
			c.must(ctx, c, http.MethodDelete, owned+"/"+l.Key.Name, "", http.StatusOK, http.StatusNotFound)
		}
	}
}

// own makes an owner, and dependents of it; with another owner, one more that belongs to both. It is not done if the owner is not
// found, as after a loss.
func (c *client) own(ctx context.Context, name string, dependents int, other *owner) (*owner, bool) {
	made, found := fmt.Sprintf(`{"metadata":{"name":%q}}`, name), struct{ Metadata struct{ UID string } }{}
	if _, _, ok := c.must(ctx, c, http.MethodPost, owned, made, http.StatusCreated, http.StatusConflict); !ok {
		return nil, false
	}
	code, answer, ok := c.must(ctx, c, http.MethodGet, owned+"/"+name, "", http.StatusOK, http.StatusNotFound)
	if !ok || code != http.StatusOK || json.Unmarshal(answer, &found) != nil {
		return nil, false
	}
	o := &owner{name: name, uid: found.Metadata.UID}
	if other != nil {
		dependents++
	}
	for i := range dependents {
		l := &history.Life{Key: history.Key{Resource: configMaps.resource, Namespace: ownedNamespace, Name: fmt.Sprintf("%s-%.8s-%d", name, o.uid, i)}, Until: math.MaxInt64, Why: "never"}
		references := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q,"blockOwnerDeletion":%v}`, o.name, o.uid, i == 0)
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
			l.Before = &history.Key{Resource: configMaps.resource, Namespace: ownedNamespace, Name: o.name}
		}
	}
	o.deleted = fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":%q,"preconditions":{"uid":%q}}`, policy, o.uid)
	_, _, ok := c.must(ctx, c, http.MethodDelete, owned+"/"+o.name, o.deleted, http.StatusOK, http.StatusNotFound, http.StatusConflict)
	return ok
}

// collected waits until some dependents of an owner that was deleted are gone.
func (c *client) collected(o *owner, some int) bool {
	for _, l := range o.dependents[:some] {
		if !c.absent(owned+"/"+l.Key.Name, owned+"/"+o.name, o.deleted) {
			return false
		}
	}
	return true
}
