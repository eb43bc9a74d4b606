package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// looped is a loop over ConfigMaps, and what it reconciled.
type looped struct {
	reconcile.Loop
	log   bytes.Buffer
	names []string
	fail  map[string]error
	takes time.Duration // for each
}

func (l *looped) run(change func(*looped)) func(w *controllertest.FakeAPI) func(context.Context) error {
	return func(w *controllertest.FakeAPI) func(context.Context) error {
		l.Base = reconcile.Base{Cache: w.Cache, Log: slog.New(slog.NewTextHandler(&l.log, nil))}
		l.Failure = "cannot do it"
		l.Sources = []reconcile.Source{l.Objects("configmaps", nil)}
		l.Reconcile = func(_ context.Context, key reconcile.Key) (r reconcile.Result, err error) {
			controllertest.After()
			l.names = append(l.names, key.Name)
			time.Sleep(l.takes)
			return r, l.fail[key.Name]
		}
		if change != nil {
			change(l)
		}
		return l.Run
	}
}

// took returns the names since its last call.
func (l *looped) took() string {
	names := slices.Clone(l.names)
	l.names = nil
	return fmt.Sprint(names)
}

// A key that fails is tried again and logged, unless another client's write has superseded it. One that returns ErrRetry
// is tried again and not logged.
func TestFailures(t *testing.T) {
	l := &looped{fail: map[string]error{
		"broken": errors.New("no"), "waits": reconcile.ErrRetry,
		"raced": fmt.Errorf("writing it: %w", apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "raced", nil)),
	}}
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		for _, name := range []string{"broken", "raced", "waits"} {
			w.Set("configmaps", "a", name, `{}`)
		}
		controllertest.Advance(0)
		if got := l.took(); got != "[broken raced waits]" {
			t.Errorf("at first %s", got)
		}
		controllertest.Advance(time.Second)
		if got := l.took(); got != "[broken waits]" {
			t.Errorf("after a second %s", got)
		}
		w.Set("configmaps", "a", "broken", `{"data":{"a":"b"}}`)
		controllertest.Advance(0)
		if got := l.took(); got != "[broken]" {
			t.Errorf("of another revision %s", got)
		}
		w.Set("configmaps", "a", "waits", "")
		controllertest.Advance(time.Hour)
		if l.took(); strings.Contains(l.log.String(), "raced") || strings.Contains(l.log.String(), "name=waits") {
			t.Errorf("the log says %s", l.log.String())
		}
		if n := strings.Count(l.log.String(), `msg="cannot do it" namespace=a name=broken error=no`); n < 10 || n > 25 {
			t.Errorf("%d failures are logged in an hour", n)
		}
	}, l.run(nil))
}

// All is listed again after a while, which does not put off what settles, and once it can be prepared.
func TestResync(t *testing.T) {
	l := &looped{}
	begins := 0
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set("configmaps", "a", "x", `{}`)
		controllertest.Advance(999 * time.Millisecond)
		if got := l.took(); got != "[]" || begins != 1 {
			t.Errorf("while it cannot be prepared: %s, %d tries", got, begins)
		}
		controllertest.Advance(time.Millisecond)
		controllertest.Advance(5 * time.Second)
		if got := l.took(); got != "[x]" {
			t.Errorf("when it has settled: %s", got)
		}
		controllertest.Advance(8 * time.Second) // it is listed after 3 seconds, and settles until after 8
		if got := l.took(); got != "[x]" {
			t.Errorf("when it was listed again, and in between: %s", got)
		}
	}, l.run(func(l *looped) {
		l.Debounce, l.Resync = 5*time.Second, 3*time.Second
		l.Begin = func(context.Context) error {
			controllertest.After()
			if begins++; begins == 1 {
				return errors.New("not yet")
			}
			return nil
		}
	}))
}

// TestRestart: a list leaves objects alone that were written since the server started, and no older ones, unless they have changed.
func TestRestart(t *testing.T) {
	l := &looped{}
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set("configmaps", "a", "old", `{}`)
		w.Set("configmaps", "a", "new", `{}`)
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{999 * time.Millisecond, "[]"}, {time.Millisecond, "[old]"}, {4999 * time.Millisecond, "[]"}, {time.Millisecond, "[new]"}, {2999 * time.Millisecond, "[]"}, {time.Millisecond, "[old]"}} {
			controllertest.Advance(step.after)
			if got := l.took(); got != step.want {
				t.Errorf("%v after the step before: %s, want %s", step.after, got, step.want)
			}
		}
		w.Set("configmaps", "a", "old", `{"data":{"a":"b"}}`)
		controllertest.Advance(4999 * time.Millisecond)
		if got := l.took(); got != "[]" {
			t.Errorf("before changes have settled: %s", got)
		}
		controllertest.Advance(time.Millisecond)
		if got := l.took(); got != "[new old]" {
			t.Errorf("when they have settled: %s", got)
		}
	}, l.run(func(l *looped) {
		l.Debounce, l.Resync, l.Start = 5*time.Second, 8*time.Second, 1
		begins := 0
		l.Begin = func(context.Context) error {
			controllertest.After()
			if begins++; begins == 1 {
				return errors.New("not yet")
			}
			return nil
		}
	}))
}

// TestShareAndWatches: a loop pauses by its share of time, and stops a watch that is no longer wanted.
func TestShareAndWatches(t *testing.T) {
	l := &looped{takes: 100 * time.Millisecond}
	secrets := 0
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		for i := range 5 {
			w.Set("configmaps", "a", fmt.Sprint(i), `{}`)
		}
		controllertest.Advance(1050 * time.Millisecond) // each takes 100 ms and 400 ms of rest
		if got := l.took(); got != "[0 1 2]" {
			t.Errorf("in a second %s", got)
		}
		w.Set("secrets", "a", "s", `{}`)
		controllertest.Advance(10 * time.Second)
		if secrets != 1 {
			t.Errorf("%d secrets were seen", secrets)
		}
		w.Set("configmaps", "a", "leave", `{}`)
		controllertest.Advance(time.Second)
		w.Set("secrets", "a", "t", `{}`)
		controllertest.Advance(time.Second)
		if secrets != 1 {
			t.Errorf("%d secrets were seen after the watch was left", secrets)
		}
	}, l.run(func(l *looped) {
		l.Share = 4
		do := l.Reconcile
		l.Reconcile = func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			switch key.Name {
			case "0":
				l.Watch(ctx, reconcile.Source{Storage: "secrets", Seen: func(*cache.Item) {
					controllertest.After()
					secrets++
				}})
			case "leave":
				l.Leave(func(storage string) bool { return storage == "secrets" })
			}
			return do(ctx, key)
		}
	}))
}

// TestSuperseded: joined errors are superseded only if each of them is.
func TestSuperseded(t *testing.T) {
	kind := schema.GroupResource{Resource: "configmaps"}
	conflict, gone, broken := apierrors.NewConflict(kind, "x", errors.New("changed")), apierrors.NewNotFound(kind, "y"), errors.New("the database is away")
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {conflict, true}, {fmt.Errorf("writing: %w", gone), true}, {broken, false},
		{errors.Join(conflict, gone), true}, {errors.Join(conflict, broken), false}, {errors.Join(errors.Join(conflict, broken), gone), false},
		{fmt.Errorf("writing: %w", errors.Join(conflict, gone)), true}, {fmt.Errorf("writing: %w", errors.Join(conflict, broken)), false},
		{fmt.Errorf("writing: %w, %w", conflict, broken), false},
	} {
		if got := reconcile.Superseded(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

// TestUnreadable: an object that cannot be read is logged and left out where a source sees it, until the loop lists again, and
// tried again where it is reconciled; a loop that comes upon one elsewhere lists again. None of that ends the server.
func TestUnreadable(t *testing.T) {
	l, begun, polled, readable := &looped{}, 0, 0, false
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		for _, name := range []string{"fine", "tried", "unseen"} {
			w.Set("configmaps", "a", name, `{}`)
		}
		controllertest.Advance(0)
		controllertest.Advance(2 * time.Second)
		names := l.took()
		if strings.Contains(names, "unseen") || !strings.Contains(names, "fine") || strings.Count(names, "tried") < 2 {
			t.Errorf("reconciled are %s", names)
		}
		if begun != 2 {
			t.Errorf("the loop began %d times", begun)
		}
		w.Set("configmaps", "a", "unseen", `{"data":{"a":"b"}}`)
		controllertest.Advance(0)
		for _, name := range []string{"tried", "unseen"} {
			if line := `msg="cannot do it" namespace=a name=` + name + ` error="the packed value`; !strings.Contains(l.log.String(), line) {
				t.Errorf("the log has no %s:\n%s", line, l.log.String())
			}
		}
		readable = true
		controllertest.Advance(time.Minute)
		if names = l.took(); !strings.Contains(names, "unseen") || begun != 3 {
			t.Errorf("a minute later, the loop began %d times, and reconciled are %s", begun, names)
		}
		controllertest.Advance(time.Hour)
		if begun != 3 {
			t.Errorf("the loop began %d times though it reads all objects", begun)
		}
	}, l.run(func(l *looped) {
		reconciled := l.Reconcile
		l.Begin = func(context.Context) error { begun++; return nil }
		l.Poll = func() time.Duration {
			if polled++; polled == 1 {
				panic(&cache.Unreadable{})
			}
			return 0
		}
		l.Sources = []reconcile.Source{l.Objects("configmaps", func(item *cache.Item) bool {
			if item.Name == "unseen" && !readable {
				panic(&cache.Unreadable{})
			}
			return true
		})}
		l.Reconcile = func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			if r, err := reconciled(ctx, key); key.Name != "tried" {
				return r, err
			}
			panic(&cache.Unreadable{})
		}
	}))
}
