package judge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// span is the time between two moments.
type span struct{ begin, end time.Duration }

// spans are times that do not overlap, sorted.
type spans []span

// join makes spans of times that may overlap: what several faults and stalls cover counts once.
func join(all []span) (joined spans) {
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	for _, s := range all {
		switch last := len(joined) - 1; {
		case s.end <= s.begin:
		case last >= 0 && s.begin <= joined[last].end:
			joined[last].end = max(joined[last].end, s.end)
		default:
			joined = append(joined, s)
		}
	}
	return joined
}

// within returns how much of the time between two moments the spans cover.
func (all spans) within(from, to time.Duration) (sum time.Duration) {
	first, _ := slices.BinarySearchFunc(all, from, func(s span, at time.Duration) int { return cmp.Compare(s.end, at) })
	for _, s := range all[first:] {
		if s.begin >= to {
			break
		}
		sum += min(s.end, to) - max(s.begin, from)
	}
	return sum
}

func (all spans) sum() (sum time.Duration) {
	for _, s := range all {
		sum += s.end - s.begin
	}
	return sum
}

// every stands for any server.
const every = -1

// why is the reason why a server could not work.
type why int

const (
	stood   why = iota // it stood still
	cutOff             // that, or a fault kept it from running or from its database
	touched            // that, or a fault touched its connections to clients
)

type absence struct {
	why    why
	server int
}

// away returns the spans in which something kept a server, or any, from its work.
func (j *judge) away(w why, server int) spans {
	key := absence{w, server}
	if known, ok := j.absences[key]; ok {
		return known
	}
	var all []span
	for _, f := range j.r.Faults {
		switch {
		case f.Server != server && f.Server >= 0 && server >= 0:
		case f.Clock && !f.Store:
		case f.Store && w >= cutOff:
			all = append(all, span{max(f.Begin, f.From), f.End})
		case w == touched:
			all = append(all, span{f.Begin, f.End})
		}
	}
	for _, s := range j.r.Stalls {
		if s.Server == server || s.Server < 0 || server < 0 {
			all = append(all, span{s.Begin, s.End})
		}
	}
	joined := join(all)
	j.absences[key] = joined
	return joined
}

// calm returns the time when so much time has passed in which nothing kept a server, or any, from its work.
func (j *judge) calm(w why, at, want time.Duration, server int) time.Duration {
	away := j.away(w, server)
	for end := at + want; ; {
		next := at + want + away.within(at, end)
		if next <= end {
			return end
		}
		end = next
	}
}

// quiet returns for how long a server ran, and no fault touched it or its connections, between two times.
func (j *judge) quiet(from, to time.Duration, server int) time.Duration {
	return to - from - j.away(touched, server).within(from, to)
}

// Stalls counts the times that processes did not run although no fault was injected, and sums them. Bounds of time are longer by
// this.
type Stalls struct {
	Times int           `json:"times"`
	Total time.Duration `json:"total_ns"`
}

// Add adds others.
func (s *Stalls) Add(other Stalls) {
	s.Times += other.Times
	s.Total += other.Total
}

// stalls adds up the stalls of the program, and those of each server that reach beyond its faults and the stalls of the program.
func (j *judge) stalls() {
	program := j.stalled(every)
	j.v.Program = Stalls{len(program), program.sum()}
	for _, s := range program {
		j.v.Stalls = append(j.v.Stalls, history.Stall{Server: every, Begin: s.begin, End: s.end})
	}
	servers := map[int]bool{}
	for _, s := range j.r.Stalls {
		servers[s.Server] = true
	}
	delete(servers, every)
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		known := slices.Clone(program)
		for _, f := range j.r.Faults {
			if f.Server == server || f.Server < 0 {
				known = append(known, span{f.Begin, f.End})
			}
		}
		explained := join(known)
		for _, s := range j.stalled(server) {
			if left := s.end - s.begin - explained.within(s.begin, s.end); left > 0 {
				j.v.Servers.Add(Stalls{1, left})
				j.v.Stalls = append(j.v.Stalls, history.Stall{Server: server, Begin: s.begin, End: s.end})
			}
		}
	}
}

// stalled returns the spans in which the program, or one server, did not run.
func (j *judge) stalled(server int) spans {
	var all []span
	for _, s := range j.r.Stalls {
		if s.Server == server {
			all = append(all, span{s.Begin, s.End})
		}
	}
	return join(all)
}
