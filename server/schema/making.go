package schema

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/kinds"
)

// A document is made by the request that asks for it first, and no lock is held meanwhile: what
// is at hand is served. Who asks for the same document waits for that one, as long as the own
// request lasts. Makers of documents of version 3 take turns by user; of version 2 one document is
// made at a time, for it may take seconds.

// mostWaiters is how many requests wait at most for documents, those that make some among them.
// Half of them may be of one user.
const mostWaiters = 500

// wanted is a document that somebody asks for.
type wanted struct {
	version2 bool
	protobuf bool
	key      string // of one of version 3, below /openapi/v3; "" for the index
}

// state is what documents are made of.
type state struct {
	generation uint64
	resources  []*kinds.Resource
	byKey      map[string][]*kinds.Resource
	others     uint64            // the number of what other servers say
	hashes     map[string]string // of their documents of version 3, for the index
	parts      []*Swagger        // their documents of version 2, for that
}

// making is a document that is being made. What it became is there once done is closed.
type making struct {
	state
	number  int64 // of those that were begun
	done    chan struct{}
	waiters int // guarded by the mutex of Documents
	doc     *document
	err     error
	left    bool // nothing became of it, as the request of its maker ended
}

// describes says that a document that was made of m is one of a state.
func (m *making) describes(w wanted, now *state) bool {
	if w.version2 || w.key == "" {
		return m.generation == now.generation && m.others == now.others
	}
	return slices.Equal(m.byKey[w.key], now.byKey[w.key])
}

// find gives a document as of now or of a later time, nil for an unknown one. Errors are that of ctx, an API status
// where too many wait, and why a document cannot be made.
func (d *Documents) find(ctx context.Context, user string, w wanted) (*document, error) {
	for begun := int64(-1); ; {
		d.mu.Lock()
		if begun < 0 {
			begun = d.begins
		}
		now := d.state(w)
		if doc := d.ready(w); doc != nil || !d.knows(w) {
			d.mu.Unlock()
			return doc, nil
		}
		if d.waiters >= mostWaiters || d.waiting[user] >= mostWaiters/2 {
			d.mu.Unlock()
			return nil, apierrors.NewTooManyRequests("too many requests are waiting for OpenAPI documents, please try again later", 1)
		}
		d.waiters++
		d.waiting[user]++
		m, others := d.making[w]
		if !others {
			d.begins++
			m = &making{state: now, number: d.begins, done: make(chan struct{}), left: true}
			d.making[w] = m
		}
		m.waiters++
		d.mu.Unlock()
		switch over := d.await(ctx, user, w, m, !others); {
		case !over || m.left && ctx.Err() != nil:
			return nil, ctx.Err()
		case !m.left && (m.number > begun || m.describes(w, &now)): // or who asks for what changes all the time would wait for ever
			return m.doc, m.err
		}
	}
}

// await makes a document, or waits for who does. It is not over when ctx ends first.
func (d *Documents) await(ctx context.Context, user string, w wanted, m *making, first bool) (over bool) {
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		m.waiters--
		d.waiters--
		if d.waiting[user]--; d.waiting[user] == 0 {
			delete(d.waiting, user)
		}
	}()
	if first {
		d.make(ctx, user, w, m)
		return true
	}
	select {
	case <-m.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// make makes a document once it is its turn.
func (d *Documents) make(ctx context.Context, user string, w wanted, m *making) {
	defer func() {
		d.mu.Lock()
		delete(d.making, w)
		d.mu.Unlock()
		close(m.done)
	}()
	leave, err := d.turn(ctx, user, w)
	if err != nil {
		return
	}
	defer leave()
	doc, err := d.build(ctx, w, m)
	if err != nil && ctx.Err() != nil {
		return // who waits still makes it
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
		return d.gate.Enter(ctx, user, budget.Small)
	}
	select {
	case d.making2 <- struct{}{}:
		return func() { <-d.making2 }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// unwanted says that nobody waits any more for a document that is being made.
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
