package schema

import (
	"context"
	"runtime"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/kinds"
)

// The first request for a document builds it, without holding a lock, so that finished documents are served
// meanwhile. Requests for the same document wait for it until their deadline. Builds of documents of version 3 take
// turns by user; one document of version 2 is built at a time, as that may take seconds.
//
// All requests that wait for a document are in the queue under their users, and the first whose turn it is builds it:
// a client that requests hundreds of documents makes others wait for at most one of them.

// maxWaiters limits the requests that wait for documents, including those that build one. Half of them may be of one
// user.
const maxWaiters = 500

const (
	// maxMakers limits the goroutines that build documents of version 3, half of them for one user. They use at most
	// half of the processors, in turns of makerTurn: a build that takes longer does not keep others from starting.
	maxMakers = 48
	makerTurn = 2 * time.Second
)

func newGate() *fair.Gate {
	return fair.NewGate(fair.Limits{Places: max(1, runtime.GOMAXPROCS(0)/2), Turn: makerTurn, Weight: maxMakers, KeyWeight: maxMakers / 2})
}

// wanted identifies a requested document.
type wanted struct {
	version2 bool
	protobuf bool
	key      string // of one of version 3, below /openapi/v3; "" for the index
}

// state is the input of documents.
type state struct {
	generation uint64
	resources  []*kinds.Resource
	byKey      map[string][]*kinds.Resource
	others     uint64            // changes with the documents of other servers
	hashes     map[string]string // of their documents of version 3, for the index
	parts      []*Swagger        // their documents of version 2, for that
}

// making is a document that is being made. Its result is set once done is closed.
type making struct {
	state
	number  int64 // number of the request
	open    context.Context
	close   context.CancelFunc // cancels open when a turn begins: the other requests leave the queue
	done    chan struct{}
	waiters int  // guarded by the mutex of Documents
	taken   bool // the same; a goroutine builds it
	doc     *document
	err     error
	left    bool // nothing became of it, as the request of its maker ended
}

// describes reports whether a document made by m matches a state.
func (m *making) describes(w wanted, now *state) bool {
	if w.version2 || w.key == "" {
		return m.generation == now.generation && m.others == now.others
	}
	return slices.Equal(m.byKey[w.key], now.byKey[w.key])
}

// find returns a document as of now or of a later time, nil for an unknown one. Errors are that of ctx, an
// API status if too many requests wait, and the reason why a document cannot be made.
func (d *Documents) find(ctx context.Context, user string, w wanted) (*document, error) {
	for asked := int64(-1); ; {
		d.mu.Lock()
		if asked < 0 {
			asked = d.asks
		}
		now := d.state(w)
		if doc := d.ready(w); doc != nil || !d.knows(w) {
			d.mu.Unlock()
			return doc, nil
		}
		if d.waiters >= maxWaiters || d.waiting[user] >= maxWaiters/2 {
			d.mu.Unlock()
			return nil, apierrors.NewTooManyRequests("too many requests are waiting for OpenAPI documents, please try again later", 1)
		}
		d.waiters++
		d.waiting[user]++
		m := d.making[w]
		if m == nil {
			d.asks++
			m = &making{state: now, number: d.asks, done: make(chan struct{}), left: true}
			m.open, m.close = context.WithCancel(context.Background())
			d.making[w] = m
		}
		m.waiters++
		d.mu.Unlock()
		switch over := d.await(ctx, user, w, m); {
		case !over || m.left && ctx.Err() != nil:
			return nil, ctx.Err()
		case !m.left && (m.number > asked || m.describes(w, &now)): // or a client would wait forever for a document that always changes
			return m.doc, m.err
		}
	}
}

// await waits for a document, and builds it if the user's turn comes first. over is false if ctx ends first.
func (d *Documents) await(ctx context.Context, user string, w wanted, m *making) (over bool) {
	defer d.leave(user, w, m)
	if d.line(ctx, user, w, m) {
		return true
	}
	select {
	case <-m.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// leave ends the wait of one request. A document that no request waits for is not made.
func (d *Documents) leave(user string, w wanted, m *making) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiters--
	if d.waiting[user]--; d.waiting[user] == 0 {
		delete(d.waiting, user)
	}
	if m.waiters--; m.waiters == 0 && !m.taken {
		delete(d.making, w)
		m.close()
	}
}

// line waits for the user's turn and builds a document, unless another goroutine does.
func (d *Documents) line(ctx context.Context, user string, w wanted, m *making) (made bool) {
	waits, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(m.open, end)()
	leave, err := d.turn(waits, user, w)
	if err != nil {
		return false
	}
	defer leave()
	if !d.take(m) {
		return false
	}
	d.make(ctx, w, m)
	return true
}

// take reports whether no other request makes a document yet, and claims it if so.
func (d *Documents) take(m *making) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.taken {
		return false
	}
	m.taken = true
	m.close()
	return true
}

// make makes a document.
func (d *Documents) make(ctx context.Context, w wanted, m *making) {
	defer func() {
		d.mu.Lock()
		delete(d.making, w)
		d.mu.Unlock()
		close(m.done)
	}()
	doc, err := d.build(ctx, w, m)
	if err != nil && ctx.Err() != nil {
		return // a request that waits still makes it
	}
	m.doc, m.err, m.left = doc, err, false
	if err == nil {
		d.mu.Lock()
		d.store(w, m)
		d.mu.Unlock()
	}
}

// turn waits for the turn of a maker, which ends when leave is called.
func (d *Documents) turn(ctx context.Context, user string, w wanted) (leave func(), err error) {
	if !w.version2 {
		place, err := d.gate.Enter(ctx, user, 1)
		if err != nil {
			return nil, err
		}
		return place.Leave, nil
	}
	select {
	case d.making2 <- struct{}{}:
		return func() { <-d.making2 }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// unwanted reports whether no request waits any more for a document that is being made.
func (d *Documents) unwanted(ctx context.Context, m *making) bool {
	if ctx.Err() == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return m.waiters <= 1
}

func (d *Documents) build(ctx context.Context, w wanted, m *making) (*document, error) {
	switch {
	case w.version2:
		return d.build2(m, w.protobuf, func() bool { return d.unwanted(ctx, m) })
	case w.key == "":
		return d.buildIndex(&m.state)
	}
	d.mu.Lock()
	doc := d.documents[w.key]
	d.mu.Unlock()
	if doc != nil && !slices.Equal(doc.resources, m.byKey[w.key]) {
		doc = nil
	}
	if !w.protobuf || doc == nil || doc.packed == nil {
		var err error
		if doc, err = d.build3(w.key, &m.state, doc); err != nil {
			return nil, err
		}
	}
	if !w.protobuf {
		return doc, nil
	}
	return doc.inProtobuf(d.Now())
}
