package custom

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/fair"
)

const (
	// compilersAtOnce bounds the schemas that are compiled at a time for requests, one for each user: if there are two users or
	// more, none waits for more than one schema of another.
	compilersAtOnce = 2
	// maxQueued bounds the schemas that wait to be compiled, of which half may be of one user.
	maxQueued = 256
	// ownUser is under whose name the server has schemas compiled ahead of need.
	ownUser = ""
	// answerBefore is the time before its deadline at which a request that waits for a schema is answered 429, so
	// that the client repeats it; or a quarter of its time, if that is less.
	answerBefore = 5 * time.Second
	// maxPrecompiled bounds the versions, the newest, that are compiled before a request needs them, once no
	// definition has been written for quiet.
	maxPrecompiled = 16
	quiet          = time.Second
)

// compileQueue is the compilation that Run does for requests. SchemaCache.mu guards the fields without a lock of their
// own.
type compileQueue struct {
	on      bool                         // Run is running
	queue   fair.Queue[string, *Version] // by user: each user that requests a version has it in the queue
	pending map[*Version]*compileRequest // in the queue or compiled now
	busy    map[string]bool              // users in whose turn a version is compiled now
	ahead   []*Version
	wake    chan struct{} // there is something in the queue
	came    chan struct{} // there is something in ahead
}

// compileRequest is a version that is to be compiled.
type compileRequest struct {
	users map[string]uint64 // users that requested it: their tickets in the queue
	done  chan struct{}     // closed when it is compiled
	taken bool              // it is being compiled
}

func (k *SchemaCache) open() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on = true
}

// close ends the waiting: each request compiles its schemas itself.
func (k *SchemaCache) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on = false
	for v, w := range k.pending {
		if !w.taken {
			close(w.done)
			delete(k.pending, v)
		}
	}
	k.queue = fair.Queue[string, *Version]{}
}

// ask requests the compilation of a version, once for all concurrent requests. The returned channel is closed
// after it; nil: Run is not running. The error is fair.ErrFull.
func (k *SchemaCache) ask(v *Version, user string) (<-chan struct{}, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.on {
		return nil, nil
	}
	w := k.pending[v]
	full := k.queue.Len() >= maxQueued || k.queue.Waiting(user) >= maxQueued/2
	switch {
	case w == nil && full:
		return nil, fair.ErrFull
	case w == nil:
		w = &compileRequest{users: map[string]uint64{}, done: make(chan struct{})}
		k.pending[v] = w
	}
	if _, asked := w.users[user]; !asked && !w.taken && !full { // else it is in the queue for another user
		w.users[user] = k.queue.Add(user, v)
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
	return w.done, nil
}

// next takes the version whose user has its turn, or nil.
func (k *SchemaCache) next() (user string, v *Version) {
	k.mu.Lock()
	defer k.mu.Unlock()
	user, v, ok := k.queue.Next(func(user string, _ *Version) bool { return !k.busy[user] })
	if !ok {
		return "", nil
	}
	w := k.pending[v]
	for other, ticket := range w.users {
		k.queue.Remove(other, ticket)
	}
	w.taken, w.users = true, nil
	k.busy[user] = true
	return user, v
}

// compileAll compiles the versions of the queue until ctx ends.
func (k *SchemaCache) compileAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		}
		for user, v := k.next(); v != nil; user, v = k.next() {
			v.compileWhole()
			k.mu.Lock()
			close(k.pending[v].done)
			delete(k.pending, v)
			delete(k.busy, user)
			k.mu.Unlock()
		}
	}
}

// Precompile has versions compiled before a request needs them: a client that has written a definition is about to write objects.
// While definitions are written one after the other, it waits.
func (k *SchemaCache) Precompile(versions ...*Version) {
	k.mu.Lock()
	k.ahead = append(k.ahead, versions...)
	if n := len(k.ahead) - maxPrecompiled; n > 0 {
		k.ahead = slices.Delete(k.ahead, 0, n)
	}
	k.mu.Unlock()
	select {
	case k.came <- struct{}{}:
	default:
	}
}

func (k *SchemaCache) precompile(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.came:
		}
		for timer := time.NewTimer(quiet); ; {
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-k.came:
				timer.Reset(quiet)
				continue
			case <-timer.C:
			}
			break
		}
		k.mu.Lock()
		versions := k.ahead
		k.ahead = nil
		k.mu.Unlock()
		for _, v := range versions {
			done, err := k.ask(v, ownUser)
			if err != nil {
				break // the queue is full: requests for the others will queue them
			}
			select {
			case <-ctx.Done():
				return
			case <-done:
			}
		}
	}
}

// compileWhole makes all that writes may need of the version.
func (v *Version) compileWhole() {
	defer func() { _ = recover() }() // the request that needs the version panics too: there it is answered and logged
	m := v.use()
	m.schema.Compile()
	_, _ = m.merging() // the error is kept, for the request that needs it
	m.whole.Store(true)
}

// Ready implements kinds.Schema. It waits until the parts of the schema that a write needs are compiled,
// which is done once for all waiting requests, in the turn of the first of their users, and continues when
// they end. Shortly before the deadline of the request, and if too many schemas wait, the error is a 429
// after which the client retries.
func (v *Version) Ready(ctx context.Context, user string) error {
	if m := v.made.Load(); v.kept == nil || m != nil && m.whole.Load() {
		return nil
	}
	done, err := v.kept.ask(v, user)
	if err != nil {
		return apierrors.NewTooManyRequests("too many schemas of custom resources wait to be compiled, please try again", 1)
	}
	if done == nil {
		return nil
	}
	var late <-chan time.Time
	if at, ok := ctx.Deadline(); ok {
		left := time.Until(at)
		timer := time.NewTimer(left - min(answerBefore, left/4))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-done:
		return nil
	case <-late:
		return apierrors.NewTooManyRequests("the schema of "+v.gvk.GroupKind().String()+" in version "+v.gvk.Version+" is still being compiled, please try again", 1)
	case <-ctx.Done():
		return ctx.Err()
	}
}
