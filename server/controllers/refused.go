package controllers

import (
	"sync"
	"time"
)

// mostRest is how long an object that cannot be written is left alone at most.
const mostRest = 5 * time.Minute

// refused remembers objects that could not be written, and when each is tried again:
// later each time, so that what can never be written costs little and keeps nobody
// waiting. What is not there any more is to be forgotten when it is tried. Several may use it at once.
type refused struct {
	first, longest time.Duration

	mu  sync.Mutex
	all map[objectKey]refusal
}

type objectKey struct{ namespace, name string }

// anyRevision is for an object of which each try makes another revision.
const anyRevision = -1

type refusal struct {
	revision int64 // of the object; another one may fare better, but of anyRevision
	until    time.Time
	rest     time.Duration
}

// waits says whether an object is not to be tried yet.
func (r *refused) waits(key objectKey, revision int64, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, there := r.all[key]
	return there && (old.revision == revision || old.revision == anyRevision) && now.Before(old.until)
}

// add is told of a failure.
func (r *refused) add(key objectKey, revision int64, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := r.first
	if old, there := r.all[key]; there && old.revision == revision {
		rest = min(2*old.rest, r.longest)
	}
	if r.all == nil {
		r.all = map[objectKey]refusal{}
	}
	r.all[key] = refusal{revision, now.Add(rest), rest}
}

func (r *refused) forget(key objectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, key)
}

// none says that nothing was refused.
func (r *refused) none() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all) == 0
}

// tried says whether an object has been tried so often that it is left alone for so long.
func (r *refused) tried(key objectKey, revision int64, rest time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, there := r.all[key]
	return there && old.revision == revision && old.rest >= min(rest, r.longest)
}

// until leaves an object alone until a time, whatever was tried.
func (r *refused) until(key objectKey, revision int64, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[objectKey]refusal{}
	}
	r.all[key] = refusal{revision, until, r.first}
}

// hurry has nothing wait any longer.
func (r *refused) hurry(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, one := range r.all {
		one.until = now
		r.all[key] = one
	}
}

// due are the objects to try now.
func (r *refused) due(now time.Time) (keys []objectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, one := range r.all {
		if !now.Before(one.until) {
			keys = append(keys, key)
		}
	}
	return keys
}
