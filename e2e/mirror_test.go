package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/rowlock/rowlock/e2e/harness"
)

// A reflector that meets refusals pauses for up to a minute, and for another when its
// watch then turns out to be too old. Its clock runs this much faster, so that the
// pauses take seconds and it is there for most of what the servers do.
const reflectorHaste = 20

const (
	// What a server may take for a request, and to bring a watch up to date.
	serverTime = 10 * time.Second
	// Two of the longest pauses and a request after each of them, twice over.
	reflectorTime = 2 * (2*time.Minute/reflectorHaste + 2*serverTime)
)

// hastyClock is a clock for the pauses of a reflector.
type hastyClock struct {
	clock.RealClock
	begun time.Time
}

func (c hastyClock) Now() time.Time { return c.begun.Add(reflectorHaste * time.Since(c.begun)) }

func (c hastyClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c hastyClock) NewTimer(d time.Duration) clock.Timer {
	return hastyTimer{c.RealClock.NewTimer(d / reflectorHaste)}
}

type hastyTimer struct{ clock.Timer }

func (t hastyTimer) Reset(d time.Duration) bool { return t.Timer.Reset(d / reflectorHaste) }

// mirror is what one reflector makes of the server. As a Store it refuses to go
// back: no object may come in a version older than one that came before.
type mirror struct {
	cache.Store
	name     string
	selector string

	mu    sync.Mutex
	seen  map[string]uint64
	wrong error
	lists int
	asked []*asked // the last requests, oldest first
}

// asked is a request and what has become of it.
type asked struct {
	what     string
	begun    time.Time
	answered time.Time // zero: not yet
	answer   string
	ended    time.Time // when a watch was over; zero: it runs
	events   int
	last     string // event
	lastTime time.Time
}

func (a *asked) String() string {
	since := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.Sub(a.begun).Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%s %s: answered after %s: %s; %d events, last after %s: %s; over after %s",
		a.begun.Format("15:04:05.000"), a.what, since(a.answered), a.answer, a.events, since(a.lastTime), a.last, since(a.ended))
}

func newMirror(name, selector string) *mirror {
	return &mirror{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), name: name, selector: selector, seen: map[string]uint64{}}
}

// ask makes a note of a request that begins.
func (m *mirror) ask(what string, o metav1.ListOptions) *asked {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.asked) == 12 {
		m.asked = m.asked[1:]
	}
	a := &asked{what: fmt.Sprintf("%s from %q", what, o.ResourceVersion), begun: time.Now()}
	m.asked = append(m.asked, a)
	return a
}

// answered makes a note of an answer. A watch goes on after one that is no error.
func (m *mirror) answered(a *asked, err error, whole, goesOn bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.answered, a.answer = time.Now(), fmt.Sprint(err)
	if err == nil && whole {
		m.lists++
	}
	if err != nil || !goesOn {
		a.ended = a.answered
	}
}

// mayWait says whether the mirror may still come to what is stored: its reflector
// pauses, or the server has not had its time, in which begun is when the last change was.
func (m *mirror) mayWait(begun time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wrong != nil || time.Since(begun) > reflectorTime {
		return false
	}
	for _, a := range m.asked {
		from := begun
		for _, t := range []time.Time{a.begun, a.answered} {
			if t.After(from) {
				from = t
			}
		}
		if a.ended.IsZero() && time.Since(from) > serverTime {
			return false
		}
	}
	return true
}

// account tells of the last requests.
func (m *mirror) account() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out strings.Builder
	for _, a := range m.asked {
		fmt.Fprintf(&out, "  %s\n", a)
	}
	fmt.Fprintf(&out, "  now %s", time.Now().Format("15:04:05.000"))
	return out.String()
}

// listed is how often the server answered with a whole state or began to stream it.
func (m *mirror) listed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lists
}

func (m *mirror) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wrong
}

func (m *mirror) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wrong == nil {
		m.wrong = err
	}
}

func (m *mirror) note(what string, obj any, again bool) {
	acc, err := meta.Accessor(obj)
	if err != nil {
		m.fail(fmt.Errorf("%s of %T: %w", what, obj, err))
		return
	}
	rv, err := strconv.ParseUint(acc.GetResourceVersion(), 10, 64)
	if err != nil {
		m.fail(fmt.Errorf("%s of %s: %w", what, acc.GetName(), err))
		return
	}
	m.mu.Lock()
	last := m.seen[acc.GetName()]
	m.seen[acc.GetName()] = rv
	m.mu.Unlock()
	if rv < last || rv == last && !again {
		m.fail(fmt.Errorf("%s of %s at version %d after %d", what, acc.GetName(), rv, last))
	}
}

func (m *mirror) Add(obj any) error {
	m.note("ADDED", obj, false)
	return m.Store.Add(obj)
}

func (m *mirror) Update(obj any) error {
	m.note("MODIFIED", obj, false)
	if _, ok, _ := m.Store.Get(obj); !ok {
		m.fail(fmt.Errorf("MODIFIED of an object that is not there"))
	}
	return m.Store.Update(obj)
}

func (m *mirror) Delete(obj any) error {
	m.note("DELETED", obj, false)
	if _, ok, _ := m.Store.Get(obj); !ok {
		m.fail(fmt.Errorf("DELETED of an object that is not there"))
	}
	return m.Store.Delete(obj)
}

// Replace comes with a whole state. What is not in it may have gone at any version.
func (m *mirror) Replace(list []any, rv string) error {
	for _, obj := range list {
		m.note("a list", obj, true)
	}
	return m.Store.Replace(list, rv)
}

// noted is a watch whose events the mirror takes notes of.
type noted struct {
	watch.Interface
	out  chan watch.Event
	stop context.CancelFunc
}

func (n noted) ResultChan() <-chan watch.Event { return n.out }

func (n noted) Stop() {
	n.stop()
	n.Interface.Stop()
}

func (m *mirror) watched(ctx context.Context, wg *sync.WaitGroup, a *asked, w watch.Interface) watch.Interface {
	ctx, cancel := context.WithCancel(ctx)
	n := noted{Interface: w, out: make(chan watch.Event), stop: cancel}
	wg.Go(func() {
		defer func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			a.ended = time.Now()
			close(n.out)
		}()
		for e := range w.ResultChan() {
			m.mu.Lock()
			a.events, a.lastTime, a.last = a.events+1, time.Now(), eventNote(e)
			m.mu.Unlock()
			select {
			case n.out <- e:
			case <-ctx.Done():
				return
			}
		}
	})
	return n
}

func eventNote(e watch.Event) string {
	if e.Type == watch.Error {
		return fmt.Sprintf("%s %v", e.Type, apierrors.FromObject(e.Object))
	}
	acc, err := meta.Accessor(e.Object)
	if err != nil {
		return fmt.Sprintf("%s %v", e.Type, err)
	}
	return fmt.Sprintf("%s %s at %s", e.Type, acc.GetName(), acc.GetResourceVersion())
}

// startReflector runs a reflector of configmaps into a new mirror until ctx ends.
func startReflector(ctx context.Context, t *testing.T, wg *sync.WaitGroup, s *harness.Server, form watchers, streamed bool, name, selector string) *mirror {
	m := newMirror(name, selector)
	list, watchIt, expected := form.make(t, s)
	lw := &cache.ListWatch{
		ListFunc: func(o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			a := m.ask("list", o)
			out, err := list(ctx, o)
			m.answered(a, err, o.Continue == "", false)
			return out, err
		},
		WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			what := "watch"
			if o.SendInitialEvents != nil {
				what = "streamed list"
			}
			a := m.ask(what, o)
			w, err := watchIt(ctx, o)
			m.answered(a, err, o.SendInitialEvents != nil, true)
			if err != nil {
				return nil, err
			}
			return m.watched(ctx, wg, a, w), nil
		},
	}
	r := cache.NewReflectorWithOptions(lw, expected, m, cache.ReflectorOptions{Name: name, Clock: hastyClock{begun: time.Now()}})
	r.UseWatchList = &streamed
	wg.Go(func() { r.Run(ctx.Done()) })
	return m
}
