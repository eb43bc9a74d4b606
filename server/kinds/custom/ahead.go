package custom

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// compilersAtOnce is how many schemas are compiled at a time for requests.
	compilersAtOnce = 2
	// answerBefore is how long before its deadline a request that waits for a schema is answered 429, so that the
	// client repeats it; or a quarter of the time that it has, if that is less.
	answerBefore = 5 * time.Second
	// mostAhead is how many versions, the newest, are compiled before a request needs them, once no definition
	// has been written for quiet.
	mostAhead = 16
	quiet     = time.Second
)

// compiling is what Run does for requests. Kept.mu guards what has no lock of its own.
type compiling struct {
	on      bool                       // Run is running
	queue   []*Version                 // in the order in which they were asked for
	pending map[*Version]chan struct{} // in the queue or compiled now; closed when that is over
	ahead   []*Version
	wake    chan struct{} // there is something in the queue
	came    chan struct{} // there is something in ahead
}

func newCompiling() compiling {
	return compiling{pending: map[*Version]chan struct{}{}, wake: make(chan struct{}, compilersAtOnce), came: make(chan struct{}, 1)}
}

func (k *Kept) open() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on = true
}

// close ends the waiting: each request compiles what it needs by itself.
func (k *Kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on = false
	for _, v := range k.queue {
		close(k.pending[v])
		delete(k.pending, v)
	}
	k.queue = nil
}

// ask has a version compiled, once for all requests that ask meanwhile. The channel that it returns is closed afterwards;
// nil: Run is not running.
func (k *Kept) ask(v *Version) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.on {
		return nil
	}
	done, ok := k.pending[v]
	if !ok {
		done = make(chan struct{})
		k.pending[v] = done
		k.queue = append(k.queue, v)
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
	return done
}

// next takes the first of the queue, or nil.
func (k *Kept) next() *Version {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.queue) == 0 {
		return nil
	}
	v := k.queue[0]
	k.queue = slices.Delete(k.queue, 0, 1)
	return v
}

// compileAll compiles what is in the queue until ctx ends.
func (k *Kept) compileAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		}
		for v := k.next(); v != nil; v = k.next() {
			v.compileWhole()
			k.mu.Lock()
			close(k.pending[v])
			delete(k.pending, v)
			k.mu.Unlock()
		}
	}
}

// Ahead has versions compiled before a request needs them: a client that has written a definition is about to write objects.
// While definitions are written one after the other, it waits.
func (k *Kept) Ahead(versions ...*Version) {
	k.mu.Lock()
	k.ahead = append(k.ahead, versions...)
	if n := len(k.ahead) - mostAhead; n > 0 {
		k.ahead = slices.Delete(k.ahead, 0, n)
	}
	k.mu.Unlock()
	select {
	case k.came <- struct{}{}:
	default:
	}
}

func (k *Kept) compileAhead(ctx context.Context) {
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
			select {
			case <-ctx.Done():
				return
			case <-k.ask(v):
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

// Ready implements kinds.Schema. It waits until what a write needs of the schema is compiled, which is done once for
// all requests that wait, and goes on when they end. Shortly before the deadline of the request the error is a 429 that
// has the client try again.
func (v *Version) Ready(ctx context.Context) error {
	if m := v.made.Load(); v.kept == nil || m != nil && m.whole.Load() {
		return nil
	}
	done := v.kept.ask(v)
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
