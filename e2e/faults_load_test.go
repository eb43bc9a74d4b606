package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/e2e/harness"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

// noRootCA is for tests that count ConfigMaps, or the requests for them: some seconds after a
// namespace came, or later on a busy machine, a controller adds one with the root certificates.
const noRootCA = "--controllers=*,-root-ca-cert-publisher"

// cluster is servers that share one database and one folder of keys.
type cluster struct {
	t     testing.TB
	store string
	args  []string
	dir   string
	mu    sync.Mutex
	all   []*harness.Server
	known map[*harness.Server]*api
}

// startCluster starts n servers on a store. History is kept, so that it can be compared.
func startCluster(t testing.TB, store string, n int, args ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, store: store, args: append([]string{"--history-retention=1h"}, args...)}
	for i := range n {
		c.all = append(c.all, nil)
		c.start(i, store)
	}
	return c
}

// start starts server i on a URL of the store.
func (c *cluster) start(i int, store string) {
	c.t.Helper()
	o := harness.Options{Store: store, Args: c.args, Dir: c.t.TempDir(), DataDir: c.dir}
	s := harness.StartT(c.t, o)
	c.dir = s.DataDir
	c.mu.Lock()
	c.all[i] = s
	c.mu.Unlock()
}

// again restarts server i after it has ended.
func (c *cluster) again(i int) {
	c.t.Helper()
	s, err := c.server(i).Again(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	s.EndWith(c.t)
	c.mu.Lock()
	c.all[i] = s
	c.mu.Unlock()
}

func (c *cluster) server(i int) *harness.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[i%len(c.all)]
}

// client returns a client of server i, as it runs now.
func (c *cluster) client(i int) (*api, error) {
	s := c.server(i)
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.known[s]; a != nil {
		return a, nil
	}
	hc, err := s.Client()
	if err != nil {
		return nil, err
	}
	if c.known == nil {
		c.known = map[*harness.Server]*api{}
	}
	c.known[s] = &api{s, hc}
	return c.known[s], nil
}

// load is clients that write through all servers of a cluster and remember what
// the answers, and watchers that remember what they saw.
type load struct {
	c       *cluster
	wg      sync.WaitGroup
	ctx     context.Context
	stop    context.CancelFunc
	acked   atomic.Int64
	refused atomic.Int64 // 503
	mu      sync.Mutex
	fates   map[string]map[string]bool // by name, what may be stored: values, and "" for nothing
	late    map[string][]unanswered
	watches []*watcher
}

// unanswered is a write whose server died, or whose connection broke. What it asked of
// the database may still come to pass, behind later writes through another server.
type unanswered struct {
	value string
	until time.Time
}

// lateFor is longer than PostgreSQL lets a commit wait for its lock.
const lateFor = 10 * time.Second

// startLoad runs writers, each with keys of its own, and a watcher for each server.
func startLoad(c *cluster, writers int) *load {
	l := &load{c: c, fates: map[string]map[string]bool{}, late: map[string][]unanswered{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	c.t.Cleanup(l.stop)
	for i := range c.all {
		w := newWatcher(c, i)
		l.watches = append(l.watches, w)
	}
	for w := range writers {
		l.wg.Go(func() { l.write(w) })
	}
	return l
}

// stormPause is the pause of a writer after each write: the storm is a cluster under load, not a
// benchmark, which would occupy the processors that the system under test needs.
const stormPause = 2 * time.Millisecond

// write creates, changes and deletes a few objects in turn, through every server.
func (l *load) write(w int) {
	var a *api
	for i := 0; l.ctx.Err() == nil; i++ {
		if a == nil || i%5 == 0 {
			fresh, err := l.c.client(w + i/5)
			if err != nil {
				continue
			}
			a = fresh
		}
		name, value := fmt.Sprintf("w%d-%d", w, i/4%3), fmt.Sprintf("%d-%d", w, i)
		l.mu.Lock()
		fate := l.fates[name]
		if fate == nil {
			fate = map[string]bool{"": true}
			l.fates[name] = fate
		}
		if i%4 == 3 {
			value = ""
		}
		absent := len(fate) == 1 && fate[""]
		fate[value] = true
		l.mu.Unlock()
		var code int
		var answer []byte
		var err error
		switch {
		case value == "":
			code, answer, err = a.do(context.Background(), http.MethodDelete, configMaps+"/"+name, "", "")
		case absent:
			code, answer, err = a.do(context.Background(), http.MethodPost, configMaps, "application/json", fmt.Sprintf(`{"metadata":{"name":%q},"data":{"v":%q}}`, name, value))
		default:
			code, answer, err = a.do(context.Background(), http.MethodPatch, configMaps+"/"+name, "application/merge-patch+json", fmt.Sprintf(`{"data":{"v":%q}}`, value))
		}
		l.note(name, value, absent, code, answer, err)
		pause := stormPause
		if err != nil {
			a, pause = nil, 5*time.Millisecond // its server may be on its way up
		}
		time.Sleep(pause)
	}
}

// note narrows down what may be stored under a name, now that an answer came.
func (l *load) note(name, value string, absent bool, code int, answer []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fate := l.fates[name]
	know := func(v string) {
		l.fates[name] = map[string]bool{v: true}
		for _, u := range l.late[name] {
			if time.Now().Before(u.until) {
				l.fates[name][u.value] = true
			}
		}
	}
	switch {
	case err != nil: // the outcome is open
		l.late[name] = append(l.late[name], unanswered{value, time.Now().Add(lateFor)})
	case code == http.StatusOK || code == http.StatusCreated:
		l.acked.Add(1)
		know(value)
	case code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout || code == http.StatusTooManyRequests:
		l.refused.Add(1)
	case code == http.StatusNotFound && fate[""]:
		know("")
	case code == http.StatusConflict && absent: // an earlier create of open outcome happened
		delete(fate, "")
		if len(fate) == 1 && fate[value] {
			l.c.t.Errorf("%s exists, and its create was not acknowledged", name)
		}
	default:
		l.c.t.Errorf("%s: writing %q gives %d %s", name, value, code, answer)
	}
}

// end stops the writers, and compares their answers and the events of watchers with
// the objects of every server.
func (l *load) end() {
	t := l.c.t
	t.Helper()
	l.stop()
	l.wg.Wait()
	for i := range l.c.all {
		a, err := l.c.client(i)
		if err != nil {
			t.Fatal(err)
		}
		l.compare(a)
	}
	last := l.mark()
	for _, w := range l.watches {
		w.finish(last)
	}
	first := l.watches[0]
	for i, w := range l.watches[1:] {
		sameEvents(t, fmt.Sprintf("watcher %d", i+1), w.seen, "watcher 0", first.seen, max(w.from, first.from))
	}
	if strings.HasPrefix(l.c.store, "postgres") {
		sameEvents(t, "watcher 0", first.seen, "the table", logOf(t, l.c.store, first.from), first.from)
	}
	t.Logf("%d acknowledged, %d refused, %d events", l.acked.Load(), l.refused.Load(), len(first.seen))
	if l.acked.Load() == 0 {
		t.Error("nothing was written")
	}
}

// mark writes an object behind everything else, and returns its revision.
func (l *load) mark() int64 {
	t := l.c.t
	t.Helper()
	a, err := l.c.client(0)
	if err != nil {
		t.Fatal(err)
	}
	code, body, err := a.do(context.Background(), http.MethodPost, configMaps, "application/json", `{"metadata":{"generateName":"last-"}}`)
	var made configMap
	if err != nil || code != http.StatusCreated || json.Unmarshal(body, &made) != nil {
		t.Fatalf("writing the last object: %d %s %v", code, body, err)
	}
	revision, err := strconv.ParseInt(made.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func sameEvents(t testing.TB, who string, got map[int64]string, whose string, want map[int64]string, after int64) {
	t.Helper()
	for revision, event := range got {
		if revision > after && want[revision] != event {
			t.Errorf("at revision %d %s has %q, %s has %q", revision, who, event, whose, want[revision])
		}
	}
	for revision, event := range want {
		if _, ok := got[revision]; revision > after && !ok {
			t.Errorf("at revision %d %s has %q, %s has nothing", revision, whose, event, who)
		}
	}
}

// compare lists the objects through one server.
func (l *load) compare(a *api) {
	t := l.c.t
	t.Helper()
	found := a.values(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, fate := range l.fates {
		if !fate[found[name]] {
			t.Errorf("%s is %q on %s, may be one of %v", name, found[name], a.s.URL, fate)
		}
	}
}

// watcher follows config maps through server i, and through the next one when that
// ends, from where it was.
type watcher struct {
	c     *cluster
	from  int64
	mu    sync.Mutex
	at    int64
	seen  map[int64]string
	stop  context.CancelFunc
	ended chan struct{}
	times chan time.Time // of each event, if set
}

func newWatcher(c *cluster, i int) *watcher {
	c.t.Helper()
	a, err := c.client(i)
	if err != nil {
		c.t.Fatal(err)
	}
	code, body, err := a.do(context.Background(), http.MethodGet, configMaps, "", "")
	if err != nil || code != http.StatusOK {
		c.t.Fatalf("list: %d %v %s", code, err, body)
	}
	var list configMapList
	if err := json.Unmarshal(body, &list); err != nil {
		c.t.Fatal(err)
	}
	from, err := strconv.ParseInt(list.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &watcher{c: c, from: from, at: from, seen: map[int64]string{}, stop: stop, ended: make(chan struct{})}
	c.t.Cleanup(func() { stop(); <-w.ended })
	go func() {
		defer close(w.ended)
		for ; ctx.Err() == nil; i++ {
			if err := w.watch(ctx, i); err != nil {
				c.t.Error(err)
				return
			}
		}
	}()
	return w
}

// watch follows one stream to its end; an error is a broken promise.
func (w *watcher) watch(ctx context.Context, i int) error {
	a, err := w.c.client(i)
	if err != nil {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s%s?watch=1&allowWatchBookmarks=true&resourceVersion=%d", a.s.URL, configMaps, w.position()), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	resp, err := a.c.Do(req)
	if err != nil {
		time.Sleep(5 * time.Millisecond) // the server may be on its way up
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
			time.Sleep(20 * time.Millisecond)
			return nil
		}
		return fmt.Errorf("watch from %d: %d %s", w.position(), resp.StatusCode, body)
	}
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // a line that is not whole is no event
		}
		if err := w.take(line); err != nil {
			return fmt.Errorf("%s: %w", a.s.URL, err)
		}
	}
}

func (w *watcher) position() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *watcher) take(line []byte) error {
	var event struct {
		Type   string
		Object configMap
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("event %q: %w", line, err)
	}
	revision, err := strconv.ParseInt(event.Object.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("event %q: %w", line, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if event.Type == "BOOKMARK" {
		if revision < w.at {
			return fmt.Errorf("a bookmark at %d after revision %d", revision, w.at)
		}
		w.at = revision
		return nil
	}
	if revision <= w.at {
		return fmt.Errorf("%s %s at %d after revision %d", event.Type, event.Object.Metadata.Name, revision, w.at)
	}
	w.at = revision
	w.seen[revision] = event.Type + " " + event.Object.Metadata.Name + " " + event.Object.Data["v"]
	if w.times != nil {
		w.times <- time.Now()
	}
	return nil
}

// finish waits until a watcher has been brought a revision, and ends it.
func (w *watcher) finish(revision int64) map[int64]string {
	w.c.t.Helper()
	for deadline := time.Now().Add(patience); w.position() < revision; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.c.t.Errorf("a watcher is at revision %d, and the last write was %d", w.position(), revision)
			break
		}
	}
	w.stop()
	<-w.ended
	return w.seen
}

// logOf reads from the table what watchers must have seen after a revision, and
// checks that no revision is missing.
func logOf(t testing.TB, url string, after int64) map[int64]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), `SELECT revision, change, resource, namespace, name, coalesce(value -> 'data' ->> 'v', '') FROM history ORDER BY revision`)
	if err != nil {
		t.Fatal(err)
	}
	log := map[int64]string{}
	events := map[string]string{"create": "ADDED", "update": "MODIFIED", "delete": "DELETED"}
	next := int64(1)
	var revision int64
	var change, resource, namespace, name, value string
	_, err = pgx.ForEachRow(rows, []any{&revision, &change, &resource, &namespace, &name, &value}, func() error {
		if revision != next {
			return fmt.Errorf("revision %d follows %d", revision, next-1)
		}
		next++
		if resource == "configmaps" && namespace == "default" && revision > after {
			log[revision] = events[change] + " " + name + " " + value
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return log
}
