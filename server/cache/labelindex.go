package cache

// labelBuild is an index of labels in the making. Items change meanwhile.
type labelBuild struct{ meanwhile []moved }

// moved is an item that took the place of an older one; either may be nil.
type moved struct{ it, old *Item }

// Bounds of what is kept of the changes that come while labels are indexed.
const (
	fewMoved  = 256     // so many are entered while writers wait
	mostMoved = 1 << 20 // with more, the index is given up
	mostTurns = 32      // of entering what came during the last one
)

// indexLabels lets an index of labels be made, if there is none and nobody is at it. Readers
// look at all items until it is there.
func (s *resource) indexLabels() {
	if s.internal || s.wantIndex.Swap(true) {
		return
	}
	s.cache.fanOuts.start(s.buildLabels)
}

// buildLabels makes the index out of what is published, beside the lock. What comes meanwhile
// is entered in turns, each shorter than the one before; of the last few writers wait.
func (s *resource) buildLabels() {
	b := &labelBuild{}
	s.mu.Lock()
	s.build = b
	v := s.state()
	s.mu.Unlock()
	labels := index(v.items, labelTerms, sameLabels, s.cache.fanOuts.ended)
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
			reenter(labels, labelTerms, m.it, m.old)
		}
	}
}

// finish publishes the index if little is missing. Otherwise it returns what is, and more.
func (s *resource) finish(b *labelBuild, labels *postings, turn int) (some []moved, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.build != b { // the items are others now, or too many changed
		return nil, false
	}
	some, b.meanwhile = b.meanwhile, nil
	if len(some) > fewMoved {
		if turn < mostTurns {
			return some, true
		}
		s.dropBuild(b)
		return nil, false
	}
	for _, m := range some {
		reenter(labels, labelTerms, m.it, m.old)
	}
	s.build = nil
	s.alter(func() { s.labels = labels })
	return nil, false
}

// dropBuild gives an index up; the next reader who would use one begins anew. The resource's
// mu is held.
func (s *resource) dropBuild(b *labelBuild) {
	if s.build == b {
		s.build = nil
		s.wantIndex.Store(false)
	}
}

// relabel keeps the labels' index in step with a change, or the one in the making. The
// resource's mu is held.
func (s *resource) relabel(it, old *Item) {
	switch b := s.build; {
	case s.labels != nil:
		reenter(s.labels, labelTerms, it, old)
	case b == nil:
	case len(b.meanwhile) == mostMoved:
		s.dropBuild(b)
	default:
		b.meanwhile = append(b.meanwhile, moved{it, old})
	}
}

// forgetLabels is for when the items are all others. It returns whether an index was there, or
// in the making. The resource's mu is held.
func (s *resource) forgetLabels() (had bool) {
	had = s.wantIndex.Swap(false)
	s.labels, s.build = nil, nil
	return had
}
