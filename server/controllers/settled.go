package controllers

import "time"

// settled are objects that are left alone for a while before anything is done about
// them; see Config.Settle. How often they change meanwhile makes no difference.
type settled struct {
	rest time.Duration // 0: none is
	line []settledAt   // in the order of times
	in   map[objectKey]bool
}

type settledAt struct {
	key objectKey
	at  time.Time
}

// wait has an object wait, and says whether it does.
func (s *settled) wait(key objectKey, now time.Time) bool {
	if s.rest == 0 {
		return false
	}
	if !s.in[key] {
		if s.in == nil {
			s.in = map[objectKey]bool{}
		}
		s.in[key] = true
		s.line = append(s.line, settledAt{key, now.Add(s.rest)})
	}
	return true
}

// due takes out those that have waited long enough.
func (s *settled) due(now time.Time) (keys []objectKey) {
	for len(s.line) > 0 && !now.Before(s.line[0].at) {
		keys = append(keys, s.line[0].key)
		delete(s.in, s.line[0].key)
		s.line = s.line[1:]
	}
	if len(s.line) == 0 {
		s.line = nil
	}
	return keys
}

// all takes out those that wait, however long they have.
func (s *settled) all() (keys []objectKey) {
	for _, e := range s.line {
		keys = append(keys, e.key)
	}
	s.line, s.in = nil, nil
	return keys
}

// next is a channel that says when one may be due; nil: none waits.
func (s *settled) next(now time.Time) <-chan time.Time {
	if len(s.line) == 0 {
		return nil
	}
	return time.After(s.line[0].at.Sub(now))
}
