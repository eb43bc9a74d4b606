package seats

import (
	"math"
	"slices"
	"time"
)

// Levels lend and borrow seats at this interval. The estimated demand of a level follows a rise at once, and
// a fall slowly: each period smooths the previous ones.
const (
	adjustEvery = 10 * time.Second
	smoothing   = 0.977
)

// integrator records the demand for seats over time.
type integrator struct {
	time, sum, squares float64 // seconds, seat-seconds, and so on
	high               float64
}

func (i *integrator) add(seconds, x float64) {
	i.time += seconds
	i.sum += x * seconds
	i.squares += x * x * seconds
}

func (i *integrator) peak(x float64) { i.high = max(i.high, x) }

// take returns the recorded demand, and starts again with the current one.
func (i *integrator) take(now float64) (was integrator) {
	was = *i
	*i = integrator{high: now}
	return was
}

// statistics describe the demand for seats of a level.
type statistics struct {
	High, Average, Deviation float64 // of the last period
	Smoothed                 float64
}

func (s *statistics) update(i integrator) {
	s.High = i.high
	if i.time <= 0 {
		return
	}
	s.Average = i.sum / i.time
	s.Deviation = math.Sqrt(max(0, i.squares/i.time-s.Average*s.Average))
	envelope := s.Average + s.Deviation
	kept := math.Pow(smoothing, i.time/adjustEvery.Seconds())
	s.Smoothed = max(envelope, kept*s.Smoothed+(1-kept)*envelope)
}

// claim is the share of a level: a target, within bounds.
type claim struct{ lower, upper, target float64 }

func (c claim) at(fair float64) float64 {
	return min(c.upper, max(c.lower, fair*max(c.target, leastTarget)))
}

// leastTarget is the target of a level without demand.
const leastTarget = 0.001

// allocate finds the fraction of all targets for which the allotments add up to a total. If the bounds do not
// allow that sum, the allotments are the bounds.
func allocate(total float64, claims []claim) (given []float64, fair float64) {
	sum := func(fair float64) (n float64) {
		for _, c := range claims {
			n += c.at(fair)
		}
		return n
	}
	// The sum grows linearly between the fractions at which a claim reaches a bound. The wanted fraction lies
	// between two of those.
	marks := make([]float64, 0, 2*len(claims)+1)
	for _, c := range claims {
		target := max(c.target, leastTarget)
		marks = append(marks, c.lower/target, c.upper/target)
	}
	slices.Sort(marks)
	before, reached := 0.0, sum(0)
	for _, mark := range marks {
		n := sum(mark)
		if n >= total {
			if fair = mark; n > reached {
				fair = before + (mark-before)*max(0, total-reached)/(n-reached)
			}
			break
		}
		before, reached, fair = mark, n, mark
	}
	given = make([]float64, len(claims))
	for i, c := range claims {
		given[i] = c.at(fair)
	}
	return given, fair
}
