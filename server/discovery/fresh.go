package discovery

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds"
)

const (
	// manyResources is the number of resources above which documents may be a little older than the resources.
	manyResources = 1000
	// oftenAs is the time until documents of many resources are built again, as a multiple of the duration of a
	// build, which bounds the share of a processor for that.
	oftenAs = 10
	// oldest bounds that if making them took long because others had the processors. Requests in the meantime
	// get documents that are at most twice as old, and wait for new ones after that.
	oldest = 500 * time.Millisecond
)

// fresh reports whether documents of many resources may be served a while after they were made.
func (d *documents) fresh(age time.Duration) bool { return age < min(oftenAs*d.took, oldest) }

// state is the input for documents.
type state struct {
	resources                     []*kinds.Resource
	services                      []Service
	generation, serviceGeneration uint64
}

func (h *Handler) state() (s state) {
	if h.config.Follow != nil {
		h.config.Follow()
	}
	s.resources, s.generation = h.config.Catalogue.Snapshot()
	s.services, s.serviceGeneration = h.services()
	return s
}

// describes reports whether documents are of a state, or of a later one.
func (d *documents) describes(s *state) bool {
	return d != nil && d.generation >= s.generation && d.serviceGeneration >= s.serviceGeneration
}

// documents returns the documents of the current catalogue and APIServices. With many resources they may be as old as a
// second plus the duration of a build: while clients install thousands of definitions, requests do not wait for a build
// each time.
func (h *Handler) documents() (*documents, error) {
	resources, _ := h.config.Catalogue.Snapshot()
	last := h.current.Load()
	many := last != nil && len(resources) > manyResources
	if many && last.fresh(time.Since(last.at)) {
		return last, nil
	}
	if many && h.running.Load() && time.Since(last.at) < 2*oldest {
		select { // the loop finds out whether there is anything new
		case h.wanted <- struct{}{}:
		default: // it is wanted already
		}
		return last, nil
	}
	now := h.state()
	if last.describes(&now) {
		return last, nil
	}
	if !h.mu.TryLock() {
		if many {
			return last, nil
		}
		h.mu.Lock()
	}
	defer h.mu.Unlock()
	return h.make(&now)
}

// settled returns documents whose part for a path is up to date although definitions have changed since: that of a
// version of a group with only built-in resources. It returns nil if that is not certain.
func (h *Handler) settled(path []string) *documents {
	last := h.current.Load()
	if last == nil {
		return nil
	}
	var gv schema.GroupVersion
	switch {
	case path[0] == "api" && len(path) == 2:
		gv.Version = path[1]
	case path[0] == "apis" && len(path) == 3:
		gv.Group, gv.Version = path[1], path[2]
	default:
		return nil
	}
	if custom, here := last.custom[gv.Group]; custom || !here || last.part(gv) == nil {
		return nil
	}
	for _, version := range h.config.Catalogue.Versions(gv.Group) {
		if last.part(schema.GroupVersion{Group: gv.Group, Version: version}) == nil {
			return nil // the group has a new definition
		}
	}
	return last
}

// make builds the documents of a state, unless another goroutine has. The caller holds mu.
func (h *Handler) make(now *state) (*documents, error) {
	last := h.current.Load()
	if last.describes(now) {
		return last, nil
	}
	began := time.Now()
	d, err := describe(now.resources, now.services, !h.config.NoHashes, last)
	if err == nil && len(now.resources) > manyResources {
		err = d.finish(last)
	}
	if err != nil {
		return nil, err
	}
	d.generation, d.serviceGeneration = now.generation, now.serviceGeneration
	d.at = time.Now()
	d.took = d.at.Sub(began)
	h.current.Store(d)
	h.made.Add(1)
	return d, nil
}

// Run makes documents of many resources when requests need newer ones, so that a client that polls waits for
// none of them, until ctx ends.
func (h *Handler) Run(ctx context.Context) error {
	h.running.Store(true)
	defer h.running.Store(false)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.wanted:
		}
		h.again()
	}
}

// again makes the present documents. Failures are retried, and reported, by the next request that finds them
// too old.
func (h *Handler) again() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.state()
	_, _ = h.make(&now)
}
