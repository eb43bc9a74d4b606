package cache

// labelBuild is an index of labels that is being built, while items change.
type labelBuild struct{ meanwhile []moved }

// moved is an item that replaced an older one; either may be nil.
type moved struct{ it, old *Item }

// Bounds for the changes that come while labels are indexed.
const (
	fewMoved = 256     // entered while writers wait
	maxMoved = 1 << 20 // with more changes the build stops
	maxTurns = 32      // of entering the changes of the turn before
)

// indexLabels starts to build an index of labels, unless there is one or it is being built. Until it is done, readers scan.
func (s *resource) indexLabels() {
	if s.internal || s.wantIndex.Swap(true) {
		return
	}
	s.hub.start(s.buildLabels)
}

// buildLabels builds the index from the current state, without holding mu. It enters the changes that come meanwhile in
// turns, each shorter than the one before; writers wait only for the last few.
func (s *resource) buildLabels() {
	b := &labelBuild{}
	s.mu.Lock()
	s.build = b
	v := s.state()
	s.mu.Unlock()
	labels := index(v.items, labelTerms, sameLabels, s.hub.isClosed)
	if labels == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dropBuild(b)
		return
	}
	for turn := 0; ; turn++ {
		some, more := s.finish(b, labels, turn)
		if !more {
			return
		}
		for _, m := range some {
			reindex(labels, labelTerms, m.it, m.old)
		}
	}
}

// finish publishes the index if little is missing. Otherwise it returns the missing changes.
func (s *resource) finish(b *labelBuild, labels *postings, turn int) (some []moved, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.build != b { // everything was loaded again, or too many items changed
		return nil, false
	}
	some, b.meanwhile = b.meanwhile, nil
	if len(some) > fewMoved {
		if turn < maxTurns {
			return some, true
		}
		s.dropBuild(b)
		return nil, false
	}
	for _, m := range some {
		reindex(labels, labelTerms, m.it, m.old)
	}
	s.build = nil
	s.alter(func() { s.labels = labels })
	return nil, false
}

// dropBuild stops the build; the next reader that needs the index starts another. The caller holds mu.
func (s *resource) dropBuild(b *labelBuild) {
	if s.build == b {
		s.build = nil
		s.wantIndex.Store(false)
	}
}

// relabel enters a change into the index of labels, or notes it for the build. The caller holds mu.
func (s *resource) relabel(it, old *Item) {
	switch b := s.build; {
	case s.labels != nil:
		reindex(s.labels, labelTerms, it, old)
	case b == nil:
	case len(b.meanwhile) == maxMoved:
		s.dropBuild(b)
	default:
		b.meanwhile = append(b.meanwhile, moved{it, old})
	}
}

// forgetLabels drops the index of labels, as all items are replaced. It returns whether there was an index or a build. The
// caller holds mu.
func (s *resource) forgetLabels() (had bool) {
	had = s.wantIndex.Swap(false)
	s.labels, s.build = nil, nil
	return had
}
