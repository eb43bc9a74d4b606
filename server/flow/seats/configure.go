package seats

import (
	"math"
	"time"
)

// Configure sets the levels, and returns them in the order of the argument. A level that is missing there
// continues, with the seats of its shares, until it has no requests.
func (s *Scheduler) Configure(configs []Config) []*Level {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	old := make(map[string]*Level, len(s.shared))
	for _, l := range s.shared {
		l.advance(now)
		old[l.config.Name], l.gone = l, true
	}
	levels := make([]*Level, len(configs))
	for i, c := range configs {
		l := old[c.Name]
		if l == nil {
			l = &Level{limit: -1, at: now, timings: newTimings()}
			l.listed = true
			s.shared = append(s.shared, l)
		}
		l.config, l.gone = c, false
		levels[i] = l
	}
	s.forget()
	s.share()
	s.adjust(now)
	return levels
}

// list adds a level for which a request has arrived after the level was dropped.
func (s *Scheduler) list(l *Level) {
	if !l.listed && !l.fixed {
		l.listed = true
		s.shared = append(s.shared, l)
	}
}

// forget drops levels that have drained, and reports whether there were any.
func (s *Scheduler) forget() (dropped bool) {
	kept := s.shared[:0]
	for _, l := range s.shared {
		if l.gone && l.idle() && len(l.resuming) == 0 {
			l.listed, dropped = false, true
			continue
		}
		kept = append(kept, l)
	}
	clear(s.shared[len(kept):])
	s.shared = kept
	return dropped
}

// A request of a level with queues takes at most this fraction of its seats, and leaves some for each queue
// of a hand.
const maxOfLevel = 0.15

// share gives each level the seats of its shares, rounded up.
func (s *Scheduler) share() {
	sum := 0.0
	for _, l := range s.shared {
		sum += float64(l.config.Shares)
	}
	for _, l := range s.shared {
		c := &l.config
		l.nominal, l.tenth = 0, float64(s.seats)/10
		if sum > 0 {
			l.nominal = int(math.Ceil(float64(s.seats) * float64(c.Shares) / sum))
		}
		lends := percent(l.nominal, c.Lendable)
		l.lower, l.upper = l.nominal-lends, l.nominal+s.seats
		if c.Borrowing >= 0 {
			l.upper = l.nominal + percent(l.nominal, c.Borrowing)
		}
		if l.limit < 0 {
			l.limit = l.nominal - lends/2
		}
		most := MostSeats
		if c.Kind == Queue {
			most = min(most, int(math.Ceil(float64(l.nominal)*maxOfLevel)), l.nominal/max(c.Hand, 1))
		}
		l.most.Store(int32(max(most, 1)))
	}
}

func percent(of, percent int) int { return int(math.Round(float64(of) * float64(percent) / 100)) }

// adjust lends and borrows seats among levels, by their demand since the last time.
func (s *Scheduler) adjust(now time.Duration) {
	s.adjusted = now
	if s.forget() {
		s.share()
	}
	total := 0
	var claims []claim
	var limited []*Level
	for _, l := range s.shared {
		l.advance(now)
		l.stats.update(l.demand.take(float64(l.used + l.wanted)))
		total += l.nominal
	}
	for _, l := range s.shared {
		lower := max(float64(l.lower), min(float64(l.nominal), l.stats.High))
		if l.config.Kind == Exempt {
			l.limit, l.target = int(lower), lower
			total -= l.limit
			continue
		}
		l.target = max(lower, l.stats.Smoothed)
		limited = append(limited, l)
		claims = append(claims, claim{lower, float64(l.upper), l.target})
	}
	var given []float64
	given, s.fair = allocate(float64(total), claims)
	for i, l := range limited {
		l.limit = int(math.Round(given[i]))
	}
	for _, l := range s.shared {
		s.dispatch(l, now, false)
	}
}
