package garbage

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
)

// errAgain: the object has changed; queue it again.
var errAgain = errors.New("there is more to do")

// processor deletes objects, or changes their owner references or finalizers. Workers share it.
type processor struct {
	*state
	progress  *progress
	remote    *remoteOwners
	misplaced *misplaced
}

// process processes an object, and reports whether it must be queued again.
func (c *processor) process(ctx context.Context, id graph.ID) (again bool) {
	s, unread := c.subject(id)
	if unread {
		return true
	}
	if s == nil {
		return false // deleted: the watch delivers that
	}
	err := c.Cache.WaitFor(ctx, s.item.Revision)
	if err == nil {
		err = c.settle(ctx, s)
	}
	switch {
	case err == nil, ctx.Err() != nil:
		return false
	case apierrors.IsNotFound(err): // deleted, or temporarily not served
		s, unread := c.subject(id)
		return s != nil || unread
	case errors.Is(err, errUnknown):
		c.park(id)
		return false
	case !apierrors.IsConflict(err) && !errors.Is(err, errAgain):
		c.failed.Log(ctx, c.Log, slog.LevelWarn, "collecting garbage", "resource", s.storage, "namespace", s.item.Namespace, "name", s.item.Name, "error", err)
	}
	return true
}

// subject finds an object; nil if it is not there, or cannot be read, which is logged if it may be readable later.
func (c *processor) subject(id graph.ID) (_ *subject, unread bool) {
	c.mu.Lock()
	node, ok := c.graph.Find(id)
	storage := ""
	if name := c.kinds.names[node.Place.Kind]; ok && name != nil {
		storage = name.storage
	}
	c.mu.Unlock()
	if !ok || !node.Located || node.Absent || storage == "" {
		return nil, false
	}
	item := c.Cache.Get(storage, node.Place.Namespace.Value(), node.Place.Name)
	if item == nil || item.Err() != nil {
		return nil, false
	}
	s := &subject{id: id, storage: storage, item: item}
	if err := cache.Try(func() { s.metadata = read(item) }); err != nil {
		c.logUnread(item, err)
		return nil, true
	}
	if graph.IDOf(s.UID) != id {
		return nil, false
	}
	return s, false
}

// ownerStates is the state of an object's owners.
type ownerStates struct {
	owners    []owner
	count     [leaving + 1]int
	elsewhere bool  // at least one owner is not in memory, and may be at another server
	refused   error // the first error of a look-up
}

// are selects references by the states of their owners.
func (v *ownerStates) are(some ...owner) func(i int) bool {
	return func(i int) bool { return slices.Contains(some, v.owners[i]) }
}

func (v *ownerStates) note(i int, o owner, err error) {
	if err == nil {
		v.owners[i] = o
		v.count[o]++
	} else if v.refused == nil {
		v.refused = err
	}
}

// resolveOwners looks up all owners of an object. It queries other servers only if the decision depends on them, and
// not for long.
func (c *processor) resolveOwners(ctx context.Context, s *subject) *ownerStates {
	v := &ownerStates{owners: make([]owner, len(s.refs))}
	var others []int
	for i := range s.refs {
		if o, err := c.resolveOwner(s.item, &s.refs[i]); errors.Is(err, errRemote) {
			others = append(others, i)
		} else {
			v.note(i, o, err)
		}
	}
	if v.elsewhere = len(others) > 0; !v.elsewhere {
		return v
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, i := range others {
		if v.refused == nil {
			o, err := c.remote.resolveOwner(ctx, s, &s.refs[i])
			v.note(i, o, err)
		}
	}
	return v
}

// settle is look for an object that exists.
func (c *processor) settle(ctx context.Context, s *subject) error {
	v := c.resolveOwners(ctx, s)
	switch {
	case v.count[leaving] > 0: // other work follows after that
		return c.release(ctx, s, v.are(leaving))
	case stateOf(s.OwnerInfo) == graph.Orphaning:
		return c.orphan(ctx, s)
	case stateOf(s.OwnerInfo) == graph.Foreground:
		return c.finish(ctx, s)
	case s.Deleting || len(s.refs) == 0:
		return nil
	case errors.Is(v.refused, errUnreachable):
		c.misplaced.report(ctx, s, func(int) bool { return true })
		return nil
	case v.refused != nil:
		return v.refused
	case v.count[solid] == len(s.refs) && v.elsewhere:
		return errUnknown // no watch reports when they are deleted: judge them again later
	case v.count[solid] == len(s.refs):
		return nil
	}
	c.misplaced.report(ctx, s, v.are(dangling))
	switch {
	case v.count[solid] > 0:
		return c.release(ctx, s, v.are(dangling, waiting))
	case v.count[waiting] > 0:
		return c.precede(ctx, s)
	}
	return c.remove(ctx, s, s.propagation())
}

// propagation returns the propagation policy for an object without owners: that of its finalizers, if any.
func (m *metadata) propagation() metav1.DeletionPropagation {
	switch {
	case m.Orphan:
		return metav1.DeletePropagationOrphan
	case m.Foreground:
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// orphan removes the finalizer orphan of an object once no dependent refers to it.
func (c *processor) orphan(ctx context.Context, s *subject) error {
	c.Orphans.Add(1)
	var err error
	c.Orphans.Work(func() bool {
		err = c.finalize(ctx, s, metav1.FinalizerOrphanDependents, func(n *graph.Node) bool { return !n.Dependents })
		return err == nil
	})
	return err
}

// finish lets an object go that waits for dependents, once none of them blocks it.
func (c *processor) finish(ctx context.Context, s *subject) error {
	return c.finalize(ctx, s, metav1.FinalizerDeleteDependents, func(n *graph.Node) bool { return n.Blocking == 0 })
}

// finalize removes a finalizer whose condition is met. The graph must contain every dependent that existed
// when the object began to wait.
func (c *processor) finalize(ctx context.Context, s *subject, finalizer string, come func(*graph.Node) bool) error {
	for range 2 { // once from the graph, and once after reading all
		c.mu.Lock()
		n, ok := c.graph.Find(s.id)
		c.mu.Unlock()
		if !ok || !come(&n) {
			return nil // the last dependent queues it again
		}
		if err := c.progress.waitFor(ctx, s.item.Revision); err != nil {
			return err
		}
	}
	return c.unfinalize(ctx, s, finalizer)
}

// precede deletes an object all of whose owners wait for it, after its own dependents if it has any.
func (c *processor) precede(ctx context.Context, s *subject) error {
	if err := c.progress.waitFor(ctx, s.item.Revision); err != nil {
		return err
	}
	dependents, circle := false, false
	c.mu.Lock()
	c.graph.Dependents(s.id, func(_ graph.ID, state graph.State) bool {
		dependents = true
		circle = circle || state == graph.Foreground
		return !circle
	})
	c.mu.Unlock()
	switch {
	case !dependents:
		return c.remove(ctx, s, s.propagation())
	case circle && s.blocks(): // an owner may wait for itself, by way of this object
		if err := c.unblock(ctx, s); err != nil {
			return err
		}
		return errAgain
	}
	return c.remove(ctx, s, metav1.DeletePropagationForeground)
}
