package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/rowlock/rowlock/e2e/harness"
)

// A reflector that meets refusals pauses for up to a minute, and for another when its
// watch then turns out to be too old. Its clock runs this much faster, so that the
// pauses take seconds and it is there for most of what the servers do.
const reflectorHaste = 20

const (
	// The time that a server may take for a request, its --request-timeout, and to bring a watch up to date.
	serverTime = time.Minute
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

// mirror is the copy of the server's state that one reflector maintains. As a Store it keeps what
// comes as spans, and refuses to go back: nothing may come at a version that is not above all that
// came before it.
type mirror struct {
	cache.Store
	name     string
	selector string
	lag      func() // what a slow client does before it takes an event; nil: nothing

	mu      sync.Mutex
	spans   []*span
	wrong   error
	lists   int
	reasons int           // for a list: what failed, or ended before it had begun
	expired int           // versions that were gone
	marks   int           // bookmarks that moved the version, without events
	marked  uint64        // the version that the last of them moved to
	calls   []*mirrorCall // the last requests, oldest first
}

// span is a state and all that came after it, to the next state.
type span struct {
	from, to uint64
	state    map[string]*change
	changes  []*change
}

// mirrorCall is a request and its outcome.
type mirrorCall struct {
	what     string
	begun    time.Time
	answered time.Time // zero: not yet
	answer   string
	ended    time.Time // when a watch was over; zero: it runs
	events   int
	last     string // event
	lastTime time.Time
}

func (a *mirrorCall) String() string {
	since := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.Sub(a.begun).Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%s %s: answered after %s: %s; %d events, last after %s: %s; over after %s",
		a.begun.Format("15:04:05.000"), a.what, since(a.answered), a.answer, a.events, since(a.lastTime), a.last, since(a.ended))
}

// begin records the start of a request.
func (m *mirror) begin(what string, o metav1.ListOptions) *mirrorCall {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.calls) == 12 {
		m.calls = m.calls[1:]
	}
	a := &mirrorCall{what: fmt.Sprintf("%s from %q", what, o.ResourceVersion), begun: time.Now()}
	m.calls = append(m.calls, a)
	return a
}

// answered records an answer. A watch goes on after one that is no error.
func (m *mirror) answered(a *mirrorCall, err error, whole, goesOn bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.answered, a.answer = time.Now(), fmt.Sprint(err)
	if err == nil && whole {
		m.lists++
	}
	if err != nil || !goesOn {
		a.ended = a.answered
	}
	if err != nil {
		m.failed(err)
	}
}

func (m *mirror) failed(err error) {
	m.reasons++
	if apierrors.IsResourceExpired(err) {
		m.expired++
	}
}

// mayWait reports whether the mirror may still catch up with the store: the reflector and the server
// have not used up their time since the last change, at begun.
func (m *mirror) mayWait(begun time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wrong != nil || time.Since(begun) > reflectorTime {
		return false
	}
	for _, a := range m.calls {
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

// account lists the last requests.
func (m *mirror) account() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out strings.Builder
	for _, a := range m.calls {
		fmt.Fprintf(&out, "  %s\n", a)
	}
	fmt.Fprintf(&out, "  now %s", time.Now().Format("15:04:05.000"))
	return out.String()
}

// movedTo reports whether a bookmark has moved the version to one that is not before this.
func (m *mirror) movedTo(version uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.marked >= version
}

func (m *mirror) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wrong
}

// fail keeps the first failure. The caller holds m.mu.
func (m *mirror) fail(format string, args ...any) {
	if m.wrong == nil {
		m.wrong = fmt.Errorf(format, args...)
	}
}

// note adds a change to the last span.
func (m *mirror) note(kind watch.EventType, obj any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := newChange(kind, obj)
	if err != nil {
		m.fail("%s: %w", kind, err)
		return
	}
	if _, there, _ := m.Store.Get(obj); there == (kind == watch.Added) {
		m.fail("%s, but there before: %v", c, there)
	}
	s := m.spans[len(m.spans)-1]
	if c.version <= s.to {
		m.fail("%s came after %d", c, s.to)
	}
	s.to, s.changes = c.version, append(s.changes, c)
}

func (m *mirror) Add(obj any) error {
	m.note(watch.Added, obj)
	return m.Store.Add(obj)
}

func (m *mirror) Update(obj any) error {
	m.note(watch.Modified, obj)
	return m.Store.Update(obj)
}

func (m *mirror) Delete(obj any) error {
	m.note(watch.Deleted, obj)
	return m.Store.Delete(obj)
}

// Replace takes a whole state. Objects that it lacks may have been deleted at any version.
func (m *mirror) Replace(list []any, rv string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	version, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		m.fail("a list: %w", err)
	}
	s := &span{from: version, to: version, state: map[string]*change{}}
	for _, obj := range list {
		c, err := newChange(watch.Added, obj)
		if err != nil {
			m.fail("an item: %w", err)
			continue
		}
		if c.version > version || s.state[c.name] != nil {
			m.fail("a list at %d with %s and %v", version, c, s.state[c.name])
		}
		s.state[c.name] = c
	}
	if n := len(m.spans); n > 0 && version < m.spans[n-1].to {
		m.fail("a list at %d after %d", version, m.spans[n-1].to)
	}
	m.spans = append(m.spans, s)
	return m.Store.Replace(list, rv)
}

// UpdateResourceVersion comes after each event and each bookmark.
func (m *mirror) UpdateResourceVersion(rv string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	version, err := strconv.ParseUint(rv, 10, 64)
	s := m.spans[len(m.spans)-1]
	if err != nil || version < s.to {
		m.fail("a bookmark at %q after %d", rv, s.to)
	}
	if version > s.to {
		s.to, m.marked = version, version
		m.marks++
	}
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

func (m *mirror) watched(ctx context.Context, wg *sync.WaitGroup, a *mirrorCall, w watch.Interface, streamed bool) watch.Interface {
	ctx, cancel := context.WithCancel(ctx)
	n := noted{Interface: w, out: make(chan watch.Event), stop: cancel}
	var initial map[string]uint64
	behind := 0 // events behind those of a streamed list
	if streamed {
		initial = map[string]uint64{}
	}
	wg.Go(func() {
		defer func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			a.ended = time.Now()
			// A reflector lists again after a short watch without events. One that continues after a streamed
			// list begins, as it sees it, whenever it has received the list.
			if initial != nil || behind == 0 && (streamed || a.ended.Sub(a.begun) < time.Second) {
				m.reasons++
			}
			close(n.out)
		}()
		for e := range w.ResultChan() {
			m.mu.Lock()
			a.events, a.lastTime, a.last = a.events+1, time.Now(), eventNote(e)
			if e.Type == watch.Error {
				m.failed(apierrors.FromObject(e.Object))
			} else if initial == nil {
				behind++
			} else if m.begins(e, initial) {
				initial = nil
			}
			m.mu.Unlock()
			if m.lag != nil {
				m.lag()
			}
			select {
			case n.out <- e:
			case <-ctx.Done():
				return
			}
		}
	})
	return n
}

// begins takes an initial event of a streamed list: each object comes once, at no later
// version than the bookmark behind them. It reports that bookmark. m.mu is held.
func (m *mirror) begins(e watch.Event, initial map[string]uint64) (over bool) {
	c, err := newChange(e.Type, e.Object)
	switch {
	case err != nil:
		m.fail("an initial event: %w", err)
	case e.Type == watch.Bookmark && c.ends:
		for name, version := range initial {
			if version > c.version {
				m.fail("%s at %d before its bookmark at %d", name, version, c.version)
			}
		}
		return true
	case e.Type != watch.Added || initial[c.name] != 0:
		m.fail("%s among the initial events, after %d", c, initial[c.name])
	}
	initial[c.name] = c.version
	return false
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

// listWatch is a source of a reflector, with or without streamed lists.
type listWatch struct {
	streamed bool
	*cache.ListWatch
}

// IsWatchListSemanticsUnSupported is a method that reflectors call.
func (l listWatch) IsWatchListSemanticsUnSupported() bool { return !l.streamed }

// startReflector runs a reflector of configmaps into a mirror until ctx ends. Each of its
// requests goes to any of the servers. Half of its watches are short: they end with a
// bookmark, and the next goes on from there.
func startReflector(ctx context.Context, t *testing.T, wg *sync.WaitGroup, form wireForm, streamed bool, m *mirror, servers ...*harness.Server) {
	m.Store = cache.NewStore(cache.MetaNamespaceKeyFunc)
	var resources []resource
	for _, s := range servers {
		r, err := form.client(m.config(t, s, form))
		if err != nil {
			t.Fatal(err)
		}
		resources = append(resources, r)
	}
	some := func() resource { return resources[rand.IntN(len(resources))] }
	lw := listWatch{streamed, &cache.ListWatch{
		ListFunc: func(o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = m.selector
			a := m.begin("list", o)
			out, err := some().list(ctx, o)
			m.answered(a, err, o.Continue == "", false)
			return out, err
		},
		WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = m.selector
			what := "watch"
			if o.SendInitialEvents != nil {
				what = "streamed list"
			}
			seconds := 3 + rand.Int64N(4)
			if m.selector == "on=never" {
				seconds = 3 // its bookmarks are waited for
			}
			if m.selector == "on=never" || rand.IntN(2) == 0 {
				o.TimeoutSeconds = &seconds
			}
			a := m.begin(what, o)
			w, err := some().watch(ctx, o)
			m.answered(a, err, o.SendInitialEvents != nil, true)
			if err != nil {
				return nil, err
			}
			return m.watched(ctx, wg, a, w, o.SendInitialEvents != nil), nil
		},
	}}
	reflector := cache.NewReflectorWithOptions(lw, resources[0].kind, m, cache.ReflectorOptions{Name: m.name, Clock: hastyClock{begun: time.Now()}})
	wg.Go(func() { reflector.Run(ctx.Done()) })
}

// config returns the configuration of a mirror's client.
func (m *mirror) config(t *testing.T, s *harness.Server, form wireForm) *rest.Config {
	cfg := restConfig(t, s, form.asks)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return answers{next, m, form.answers} })
	if m.lag != nil { // what it does not take is not taken by its system for it
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return conn, conn.(*net.TCPConn).SetReadBuffer(32 << 10)
		}
		cfg.NextProtos = []string{"http/1.1"}
	}
	return cfg
}

// answers see that a reflector gets the wire form that it is there for.
type answers struct {
	http.RoundTripper
	m    *mirror
	form string
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.RoundTripper.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusOK && !strings.HasPrefix(resp.Header.Get("Content-Type"), a.form) {
		a.m.mu.Lock()
		defer a.m.mu.Unlock()
		a.m.fail("%s is answered in %s", r.URL.RawQuery, resp.Header.Get("Content-Type"))
	}
	return resp, err
}

// content returns the objects of the mirror, by name.
func (m *mirror) content() map[string]content {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]content{}
	for _, obj := range m.Store.List() {
		c, err := newChange(watch.Added, obj)
		if err != nil {
			m.fail("%w", err)
			continue
		}
		out[c.name] = c.content
	}
	return out
}
