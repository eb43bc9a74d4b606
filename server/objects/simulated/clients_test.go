package simulated_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/sqlstore"
)

var permit = permits.OfServer("the simulation")

func resourceOf(name string) *kinds.Resource { return catalogue.Lookup("", "v1", name) }

// write is one write, of one object or of several together.
type write struct {
	request *request
	ops     []sqlstore.Op
	certain bool // it ended, and nothing of it is in the table
	expires bool
	seen    map[string]bool // values that the table has
}

func (w *world) key(n uint32) sqlstore.Key {
	n %= uint32(w.cfg.keys)
	return sqlstore.Key{Resource: []string{"pods", "pods", "configmaps"}[n%3], Namespace: []string{"a", "b"}[n/3%2], Name: fmt.Sprint("o", n/6)}
}

// op is an operation that is right more often than not, for a client that knows of the revision old (0: of no object).
func (w *world) op(key sqlstore.Key, old int64, id string, b, c uint32) sqlstore.Op {
	o := object{key.Namespace, key.Name, []string{"a", "b", "c"}[b%3], []string{"", "n0", "n1"}[b/3%3]}
	op := sqlstore.Op{Key: key, Verb: sqlstore.Create, Value: []byte(o.value(key.Resource, id, strings.Repeat("x", w.cfg.filler)))}
	switch {
	case old != 0 && b/9%8 > 0:
		op.Verb, op.Expect = sqlstore.Update, old
		if b/72%4 == 0 {
			op.Verb = sqlstore.Delete
		}
	case b/72%3 == 0 && w.head() > 0: // an old reader's
		op.Verb, op.Expect = sqlstore.Update, 1+int64(c)%w.head()
	}
	return op
}

// writing returns the number of writes under way.
func (w *world) writing() (n int) {
	for _, r := range w.open {
		if r.kind == "write" {
			n++
		}
	}
	return n
}

// write sends a write.
func (w *world) write(s *server, a, b, c uint32) {
	k := &write{seen: map[string]bool{}, expires: c%7 == 0}
	ops := 1
	if c%5 == 0 {
		ops = 1 + int(c/5%3)
	}
	var about []string
	for i := range uint32(ops) {
		key := w.key(a + i*7)
		if slices.ContainsFunc(k.ops, func(o sqlstore.Op) bool { return o.Key == key }) {
			continue
		}
		old := int64(0)
		if it := s.cache.Get(key.Resource, key.Namespace, key.Name); it != nil {
			old = it.Revision
		}
		op := w.op(key, old, fmt.Sprintf("%d-%d", w.requests+1, i), b, c)
		op.Aux = &cache.Pending{}
		if k.expires {
			op.ExpiresAt = time.Now().Add(age)
		}
		k.ops = append(k.ops, op)
		w.writes[string(op.Value)] = k
		about = append(about, describe([]sqlstore.Txn{{Ops: []sqlstore.Op{op}}}))
	}
	var out sqlstore.Outcome
	k.request = w.send(s, "write", strings.Join(about, ", "), func(ctx context.Context) (err error) {
		out, err = s.store.Write(ctx, k.ops...)
		return err
	}, func(r *request) { w.judgeWrite(k, out) })
}

// burst commits writes of a server that is not simulated, all at once.
func (w *world) burst(s step) {
	m := &commit{now: time.Now()}
	for i := range 1 + s.a%4 {
		key, old := w.key(s.b+i*5), int64(0)
		if e := w.state(key, w.head()); e != nil {
			old = e.revision
		}
		w.bursts++
		m.batch = append(m.batch, sqlstore.Txn{Ops: []sqlstore.Op{w.op(key, old, fmt.Sprint("burst ", w.bursts), s.c+i*29, s.d)}})
	}
	if err := m.run(w, w.outside); err != nil {
		w.failed("a burst: %v", err)
	}
	w.say("another server commits %s", describe(m.batch))
}

func (w *world) judgeWrite(k *write, out sqlstore.Outcome) {
	r := k.request
	if r.err == nil && !r.lost {
		w.judgeAcknowledged(k, out)
		return
	}
	if r.lost || errors.Is(r.err, sqlstore.ErrUncertain) {
		return
	}
	k.certain = true
	if len(k.seen) > 0 {
		w.failed("%s ended with %v, and is in the table", r, r.err)
	}
	var (
		exists   *sqlstore.ExistsError
		conflict *sqlstore.ConflictError
		gone     *sqlstore.NotFoundError
	)
	switch {
	case errors.As(r.err, &exists):
		w.claims(k, exists.Key, sqlstore.Create, func(e *entry) bool { return e != nil && e.revision == exists.Current.Revision })
	case errors.As(r.err, &conflict):
		w.claims(k, conflict.Key, sqlstore.Update, func(e *entry) bool {
			return e != nil && e.revision == conflict.Current.Revision && e.revision != conflict.Expect
		})
	case errors.As(r.err, &gone):
		w.claims(k, gone.Key, sqlstore.Update, func(e *entry) bool { return e == nil })
	case !excused(r.err):
		w.failed("%s ended with %v", r, r.err)
	}
}

// claims judges a refused condition: what it claims must have held while the request was under way.
func (w *world) claims(k *write, key sqlstore.Key, verb sqlstore.Verb, holds func(*entry) bool) {
	i := slices.IndexFunc(k.ops, func(o sqlstore.Op) bool { return o.Key == key })
	if i < 0 || (k.ops[i].Verb == sqlstore.Create) != (verb == sqlstore.Create) || !w.sometime(key, k.request.from, w.head(), holds) {
		w.failed("%s ended with %v, which never was so", k.request, k.request.err)
	}
}

func (w *world) judgeAcknowledged(k *write, out sqlstore.Outcome) {
	for i, op := range k.ops {
		if i >= len(out.Revisions) {
			w.failed("%s was acknowledged without revisions", k.request)
			return
		}
		revision := out.Revisions[i]
		e := w.at(revision)
		switch {
		case e == nil:
			w.failed("%s was acknowledged at %d, which is not in the table", k.request, revision)
			return
		case e.key != op.Key || e.value != string(op.Value) || e.deleted != (op.Verb == sqlstore.Delete):
			w.failed("%s was acknowledged at %d, which has %s %s", k.request, revision, e.key, e.value)
		case op.Verb != sqlstore.Create && e.prev != op.Expect, op.Verb == sqlstore.Create && e.prev != 0:
			w.failed("%s replaced revision %d", k.request, e.prev)
		case e.created != out.Created[i]:
			w.failed("%s was acknowledged as created at %d instead of %d", k.request, out.Created[i], e.created)
		case i > 0 && revision != out.Revisions[i-1]+1:
			w.failed("%s is in several parts", k.request)
		}
		if it := op.Aux.(*cache.Pending).Item; it != nil && !same(it, revision, string(op.Value)) {
			w.failed("%s was answered with revision %d of another object", k.request, it.Revision)
		}
		if at := k.request.server.cache.Revision(); at < revision {
			w.failed("%s was acknowledged at %d, and memory has %d", k.request, revision, at)
		}
		w.shown = max(w.shown, revision)
	}
}

// get reads one object: the newest, or one that is at least as new as a revision.
func (w *world) get(s *server, a, b uint32) {
	key, rv := w.key(a), ""
	if b%3 == 0 && w.shown > 0 {
		rv = strconv.FormatInt(1+int64(b/3)%w.shown, 10)
	}
	var it *cache.Item
	w.send(s, "get", fmt.Sprintf("%s/%s/%s at %q", key.Resource, key.Namespace, key.Name, rv), func(ctx context.Context) (err error) {
		it, err = s.Read(ctx, permit, objects.Place{Resource: resourceOf(key.Resource), Namespace: key.Namespace, Name: key.Name}, rv)
		return err
	}, func(r *request) {
		from := r.shown
		if rv != "" {
			from, _ = strconv.ParseInt(rv, 10, 64)
		}
		holds := func(e *entry) bool { return e == nil }
		switch {
		case r.lost, apierrors.IsTimeout(r.err), r.err != nil && excused(r.err):
			return
		case r.err == nil:
			holds = func(e *entry) bool { return e != nil && same(it, e.revision, e.value) }
			w.shown = max(w.shown, it.Revision)
		case !apierrors.IsNotFound(r.err):
			w.failed("%s ended with %v", r, r.err)
		}
		if !w.sometime(key, from, w.head(), holds) {
			found := int64(0)
			if it != nil {
				found = it.Revision
			}
			w.failed("%s found revision %d (0: none), which is older than %d", r, found, from)
		}
	})
}

func (w *world) wish(n uint32) wish {
	x := wish{resource: "pods"}
	switch n % 8 {
	case 0:
		x.resource = "configmaps"
	case 1:
		x.namespace = "a"
	case 2:
		x.label = "a"
	case 3:
		x.node = "n1"
	case 4:
		x.namespace, x.label = "b", "b"
	case 5:
		x.name = "o0"
	case 6:
		x.label, x.node = "c", "n0"
	}
	return x
}

func (x wish) options() *objects.ListOptions {
	o := &objects.ListOptions{Namespace: x.namespace, Filter: x.filter()}
	o.FieldSelector = x.fields()
	return o
}

// pager is a client that reads a list, maybe in pages, each at any server.
type pager struct {
	wish     wish
	options  internalversion.ListOptions
	least    int64 // revision that the list must have at least
	items    []*cache.Item
	revision int64 // of the first page
	busy     bool
}

// list begins a list.
func (w *world) list(s *server, a, b uint32) {
	p := &pager{wish: w.wish(a), least: w.shown}
	if b%2 == 0 {
		p.options.Limit = 1 + int64(b/2%3)
	}
	if w.shown > 0 {
		some := 1 + int64(b/16)%w.shown
		switch b / 8 % 6 {
		case 0:
			p.options.ResourceVersion, p.least = "0", 0
		case 1:
			p.options.ResourceVersion, p.least = strconv.FormatInt(some, 10), some
			p.options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		case 2, 3:
			p.options.ResourceVersion, p.least = strconv.FormatInt(some, 10), some
			p.options.ResourceVersionMatch = metav1.ResourceVersionMatchExact
		}
	}
	w.pagers = append(w.pagers, p)
	w.page(s, p)
}

// page reads the next page of a list.
func (w *world) page(s *server, p *pager) {
	p.busy = true
	o := p.wish.options()
	o.Limit, o.Continue, o.ResourceVersion, o.ResourceVersionMatch = p.options.Limit, p.options.Continue, p.options.ResourceVersion, p.options.ResourceVersionMatch
	o.ReadRevision()
	var page *objects.Page
	about := fmt.Sprintf("%s limit=%d rv=%q %s", p.wish, o.Limit, o.ResourceVersion, o.ResourceVersionMatch)
	if o.Continue != "" {
		about += fmt.Sprintf(" after %d of %d", len(p.items), p.revision)
	}
	w.send(s, "list", about, func(ctx context.Context) (err error) {
		if page, err = s.List(ctx, permit, resourceOf(p.wish.resource), o); err == nil {
			page.Gather()
		}
		return err
	}, func(r *request) {
		p.busy = false
		if r.lost || r.err != nil {
			w.judgeRefusal(p, r)
			return
		}
		w.judgePage(p, r, page)
	})
}

func (w *world) drop(p *pager) {
	w.pagers = slices.DeleteFunc(w.pagers, func(o *pager) bool { return o == p })
}

func (w *world) judgeRefusal(p *pager, r *request) {
	switch {
	case r.lost || excused(r.err): // the client sends it again
		if p.revision == 0 {
			w.drop(p)
		}
		return
	case apierrors.IsResourceExpired(r.err):
		at := p.revision
		if at == 0 {
			at = p.least
		}
		if floor := w.floor(p.wish.resource); at >= floor {
			w.failed("%s is refused as expired, and history reaches back to %d", r, floor)
		}
	case apierrors.IsTimeout(r.err): // its server is behind
	default:
		w.failed("%s ended with %v", r, r.err)
	}
	w.drop(p)
}

func (w *world) judgePage(p *pager, r *request, page *objects.Page) {
	switch {
	case p.revision == 0:
		p.revision = page.Revision
		switch {
		case p.options.ResourceVersionMatch == metav1.ResourceVersionMatchExact && page.Revision != p.least:
			w.failed("%s is of revision %d", r, page.Revision)
		case page.Revision < p.least:
			w.failed("%s is of revision %d, which is older than %d", r, page.Revision, p.least)
		case p.options.ResourceVersion == "0":
			if page.Revision < r.server.newest {
				w.failed("%s is of revision %d after %d", r, page.Revision, r.server.newest)
			}
			r.server.newest = page.Revision
		}
	case page.Revision != p.revision:
		w.failed("%s is a page of revision %d of a list of %d", r, page.Revision, p.revision)
	}
	if page.Revision > w.head() {
		w.failed("%s is of revision %d, which is not there", r, page.Revision)
		return
	}
	p.items = append(p.items, page.Items...)
	w.shown = max(w.shown, page.Revision)
	if p.options.Continue = page.Continue; page.Continue != "" {
		p.options.ResourceVersion, p.options.ResourceVersionMatch = "", ""
		return
	}
	if text := w.differs(p.wish, p.items, p.revision); text != "" {
		w.failed("%s, of revision %d: %s", r, p.revision, text)
	}
	w.drop(p)
}

// floor returns the oldest revision of which a resource can be listed now.
func (w *world) floor(resource string) int64 {
	floors, err := w.outside.Floors(context.Background())
	if err != nil {
		w.failed("%v", err)
	}
	return floors.Of(resource)
}

// logFloor returns the oldest revision of the log.
func (w *world) logFloor() int64 {
	b, err := w.outside.Bounds(context.Background())
	if err != nil {
		w.failed("%v", err)
	}
	return b.Floor
}

// watcher is a client that lists and watches, resumes at any server, and keeps the objects that it was sent.
type watcher struct {
	number  int
	wish    wish
	server  *server
	stream  *cache.Watcher
	reloads int   // of the server when the stream began
	listed  bool  // it has a list
	at      int64 // it was shown everything up to this revision
	have    map[sqlstore.Key]string
	batch   []cache.Delivery
	busy    bool
	late    *cache.Watcher // to be stopped once it is not used any more
}

func (x *watcher) String() string { return fmt.Sprintf("watcher %d (%s)", x.number, x.wish) }

// disconnect ends the stream.
func (x *watcher) disconnect() {
	switch {
	case x.stream == nil:
	case x.busy:
		x.late = x.stream
	default:
		x.stream.Stop()
	}
	x.stream, x.server = nil, nil
}

// rest is called when a request of the watcher has ended.
func (x *watcher) rest() {
	x.busy = false
	if x.late != nil {
		x.late.Stop()
		x.late = nil
	}
}

func (x *watcher) scope() cache.Scope { return cache.Scope{Filter: x.wish.filter()} }

func (x *watcher) place() objects.Place {
	return objects.Place{Resource: resourceOf(x.wish.resource), Namespace: x.wish.namespace}
}

// turn makes the next step of a watcher. patient: it reads only if it was woken.
func (w *world) turn(x *watcher, s *server, how uint32, patient bool) {
	switch {
	case x.busy:
	case x.stream != nil && patient:
		select {
		case <-x.stream.Ready():
			w.take(x)
		default:
		}
	case x.stream != nil:
		w.take(x)
	case s == nil:
	case x.listed:
		w.resume(x, s)
	case how%2 == 0:
		w.listNow(x, s, how/2)
	default:
		w.listThenWatch(x, s, how/2)
	}
}

func (x *watcher) begin(s *server, stream *cache.Watcher) {
	x.server, x.stream, x.reloads = s, stream, s.reloads
}

// resume goes on behind what the watcher was shown last.
func (w *world) resume(x *watcher, s *server) {
	stream, err := s.Watch(permit, x.place(), x.scope(), x.at)
	w.say("%s goes on after %d at %s: %v", x, x.at, s, err)
	var gone *sqlstore.CompactedError
	switch {
	case err == nil:
		x.begin(s, stream)
	case errors.As(err, &gone):
		if floor := w.logFloor(); x.at >= floor {
			w.failed("%s cannot go on after %d at %s, and the log reaches back to %d", x, x.at, s, floor)
		}
		x.listed = false
	default:
		w.failed("%s cannot go on after %d at %s: %v", x, x.at, s, err)
	}
}

// listNow lists and watches in one request, as a streaming list does.
func (w *world) listNow(x *watcher, s *server, how uint32) {
	x.busy = true
	any := how%4 == 0 // revision does
	var stream *cache.Watcher
	var found *objects.Collection
	var items []*cache.Item
	w.send(s, "watch", x.String(), func(ctx context.Context) (err error) {
		if !any {
			if err := s.CatchUp(ctx); err != nil {
				return err
			}
		}
		if stream, found, err = s.WatchNow(permit, x.place(), x.scope()); err != nil {
			return err
		}
		found.Select(x.scope().Filter, cache.Position{}, func(it *cache.Item) bool {
			items = append(items, it)
			return true
		})
		return nil
	}, func(r *request) {
		if stream != nil {
			x.begin(s, stream)
		}
		if r.lost || r.err != nil {
			x.disconnect()
			x.rest()
			if !r.lost && !excused(r.err) {
				w.failed("%s ended with %v", r, r.err)
			}
			return
		}
		x.rest()
		least := r.shown
		if any {
			least = 0
		}
		w.fill(x, r, items, found.Revision, least)
	})
}

// fill takes a list as what the watcher has.
func (w *world) fill(x *watcher, r *request, items []*cache.Item, revision, least int64) {
	if revision < least || revision > w.head() {
		w.failed("%s begins with a list of revision %d; %d was shown, %d is the newest", r, revision, least, w.head())
		return
	}
	if text := w.differs(x.wish, items, revision); text != "" {
		w.failed("%s begins with a list of revision %d: %s", r, revision, text)
	}
	x.listed, x.at, x.have = true, revision, map[sqlstore.Key]string{}
	for _, e := range w.truth.list(x.wish, revision) {
		x.have[e.key] = e.value
	}
	w.shown = max(w.shown, revision)
}

// listThenWatch lists, and watches later at any server.
func (w *world) listThenWatch(x *watcher, s *server, how uint32) {
	x.busy = true
	o := x.wish.options()
	least := w.shown
	if how%4 == 0 {
		o.ResourceVersion, least = "0", 0
	}
	o.ReadRevision()
	var page *objects.Page
	w.send(s, "list", x.String(), func(ctx context.Context) (err error) {
		if page, err = s.List(ctx, permit, resourceOf(x.wish.resource), o); err == nil {
			page.Gather()
		}
		return err
	}, func(r *request) {
		x.rest()
		if r.lost || r.err != nil {
			if !r.lost && !excused(r.err) {
				w.failed("%s ended with %v", r, r.err)
			}
			return
		}
		w.fill(x, r, page.Items, page.Revision, least)
	})
}

// take reads the events that wait.
func (w *world) take(x *watcher) {
	x.busy = true
	stream, s := x.stream, x.server
	var mark int64
	w.send(s, "take", x.String(), func(ctx context.Context) (err error) {
		x.batch, mark, err = stream.Take(ctx, x.batch)
		return err
	}, func(r *request) {
		ended := x.stream != stream // it was disconnected in the meantime
		x.rest()
		if r.lost || ended {
			return
		}
		if r.err != nil {
			w.judgeEnd(x, r)
			return
		}
		w.judgeEvents(x, r, mark)
	})
}

func (w *world) judgeEnd(x *watcher, r *request) {
	var gone *sqlstore.CompactedError
	reloaded := x.server.reloads != x.reloads
	x.disconnect()
	switch {
	case errors.Is(r.err, cache.ErrSlow), excused(r.err):
	case errors.As(r.err, &gone):
		if floor := w.logFloor(); x.at >= floor && !reloaded {
			w.failed("%s, shown everything up to %d, is refused as expired, and the log reaches back to %d", r, x.at, floor)
		}
		x.listed = false
	default:
		w.failed("%s ended with %v", r, r.err)
	}
}

func (w *world) judgeEvents(x *watcher, r *request, mark int64) {
	for _, d := range x.batch {
		it := d.Item()
		want := w.next(x.wish, x.at, w.head())
		switch {
		case want == nil:
			w.failed("%s shows %s of %s/%s at %d, after everything up to %d; there is nothing more to show", r, d.Type, it.Namespace, it.Name, it.Revision, x.at)
			return
		case d.Type != want.kind || it.Namespace != want.entry.key.Namespace || it.Name != want.entry.key.Name || !same(it, want.entry.revision, want.value):
			w.failed("%s shows %s of %s/%s at %d, after everything up to %d; it had to show %s of %s at %d\n%v %.300s\n%.300s", r, d.Type, it.Namespace, it.Name, it.Revision, x.at, want.kind, want.entry.key, want.entry.revision, it.Err(), it.JSON(), want.value)
			return
		}
		if prev := d.Event.Prev; want.entry.prev == 0 && prev != nil || want.entry.prev != 0 && (prev == nil || !same(prev, want.entry.prev, w.truth.at(want.entry.prev).value)) {
			w.failed("%s shows revision %d with another previous state than that of revision %d", r, it.Revision, want.entry.prev)
		}
		x.at = it.Revision
		if d.Type == cache.Deleted {
			delete(x.have, want.entry.key)
		} else {
			x.have[want.entry.key] = want.value
		}
	}
	if mark > w.head() {
		w.failed("%s has a mark at %d, which is not there", r, mark)
		return
	}
	if want := w.next(x.wish, x.at, mark); want != nil {
		w.failed("%s has a mark at %d, and was not shown %s of %s at %d", r, mark, want.kind, want.entry.key, want.entry.revision)
		return
	}
	if len(x.batch) > 0 || mark > x.at {
		w.say("%s has %d events, and everything up to %d", x, len(x.batch), mark)
	}
	x.at = max(x.at, mark)
	w.shown = max(w.shown, x.at)
}

// past reads the writes of one object.
func (w *world) past(s *server, a uint32) {
	key := w.key(a)
	var found []objects.Write
	w.send(s, "past", key.String(), func(ctx context.Context) (err error) {
		found, err = s.Past(ctx, permit, objects.Place{Resource: resourceOf(key.Resource), Namespace: key.Namespace, Name: key.Name}, 0, 1000)
		return err
	}, func(r *request) {
		if r.lost || r.err != nil {
			if !r.lost && !excused(r.err) {
				w.failed("%s ended with %v", r, r.err)
			}
			return
		}
		for i, one := range found {
			e := w.truth.at(one.Item.Revision)
			if e == nil || e.key != key || !same(one.Item, e.revision, e.value) || one.Deleted != e.deleted || i > 0 && found[i-1].Item.Revision <= e.revision {
				w.failed("%s shows a write of revision %d that is another", r, one.Item.Revision)
				return
			}
			w.shown = max(w.shown, e.revision)
		}
		floor, n := w.floor(key.Resource), 0
		for _, revision := range w.keys[key] {
			if revision <= r.from && revision > floor {
				n++
			}
		}
		if len(found) < n {
			w.failed("%s shows %d writes of %d", r, len(found), n)
		}
	})
}

// complete reports whether a watcher has what there is.
func (w *world) complete(x *watcher) bool {
	want := map[sqlstore.Key]string{}
	for _, e := range w.truth.list(x.wish, w.head()) {
		want[e.key] = e.value
	}
	return x.listed && maps.Equal(x.have, want) && w.next(x.wish, x.at, w.head()) == nil
}
