package seats

import "time"

// serviceTime is the expected duration of a request in seconds, until it is known.
const serviceTime = 0.003

// queue holds requests of some flows, in the order of arrival.
type queue struct {
	index       int
	first, last *Request
	length      int
	seats       int     // that waiting requests need
	work        float64 // seat-seconds of the waiting requests
	running     int     // its requests that have seats
	used        int     // their seats
	start       float64 // virtual time at which its next request begins
	at          int     // in the level's backlog; -1: no request waits
}

// deal chooses the queue of a flow by shuffle sharding: the one of its hand with the least waiting work.
func (l *Level) deal(hash uint64) *queue {
	decks := min(l.config.Queues, maxQueues)
	if len(l.queues) < decks {
		l.queues = append(l.queues, make([]*queue, decks-len(l.queues))...)
	}
	var buf [maxHand]int
	hand := deal(buf[:0], hash, decks, min(l.config.Hand, decks, maxHand))
	var best *queue
	for i := range hand {
		q := l.queues[hand[(uint64(i)+l.deals)%uint64(len(hand))]]
		if q == nil {
			index := hand[(uint64(i)+l.deals)%uint64(len(hand))]
			q = &queue{index: index, at: -1}
			l.queues[index] = q
		}
		if best == nil || q.work < best.work {
			best = q
		}
	}
	l.deals++
	return best
}

// deal appends a hand of different cards from a deck, determined by a hash.
func deal(hand []int, hash uint64, deck, n int) []int {
	for i := range n {
		left := uint64(deck - i)
		card := int(hash % left)
		hash /= left
		// card is the position among the remaining ones: each smaller card that was dealt shifts it by one.
		// hand is sorted.
		at := 0
		for at < len(hand) && hand[at] <= card {
			card++
			at++
		}
		hand = append(hand, 0)
		copy(hand[at+1:], hand[at:])
		hand[at] = card
	}
	return hand
}

// begin activates a queue that was idle: what it used before does not count.
func (l *Level) begin(q *queue) {
	if q.running == 0 && q.length == 0 {
		l.active++
		q.start = l.virtual
	}
}

// end deactivates a queue that has become idle.
func (l *Level) end(q *queue) {
	if q.running == 0 && q.length == 0 {
		l.active--
	}
}

// enqueue adds a request to its queue.
func (l *Level) enqueue(r *Request) {
	q := r.queue
	l.begin(q)
	r.arrival = l.virtual
	if r.before = q.last; q.last == nil {
		q.first = r
	} else {
		q.last.after = r
	}
	q.last = r
	q.length++
	q.seats += r.Seats
	q.work += r.work()
	if q.at < 0 {
		q.at = len(l.backlog)
		l.backlog = append(l.backlog, q)
	}
	l.waiting++
	l.wanted += r.Seats
}

// dequeue removes a request from its queue, to run or to leave. The queue may be idle afterwards: end must
// follow.
func (l *Level) dequeue(r *Request) {
	q := r.queue
	if r.before == nil {
		q.first = r.after
	} else {
		r.before.after = r.after
	}
	if r.after == nil {
		q.last = r.before
	} else {
		r.after.before = r.before
	}
	r.before, r.after = nil, nil
	q.length--
	q.seats -= r.Seats
	q.work -= r.work()
	if q.length == 0 {
		q.work = 0
		last := len(l.backlog) - 1
		l.backlog[q.at] = l.backlog[last]
		l.backlog[q.at].at = q.at
		l.backlog[last] = nil
		l.backlog = l.backlog[:last]
		q.at = -1
	}
	l.waiting--
	l.wanted -= r.Seats
}

// next returns the next request of the queue that is furthest behind: whose next request would be done first
// if all active queues were served at the same rate.
func (l *Level) next() *Request {
	var best *Request
	var least float64
	for _, q := range l.backlog {
		r := q.first
		done := q.start + r.work()
		if best == nil || done < least || done == least && r.since < best.since {
			best, least = r, done
		}
	}
	return best
}

// charge accounts for a request of a queue that begins to run.
func (l *Level) charge(r *Request, work float64) {
	q := r.queue
	l.ran, l.latest = l.virtual, q.start
	q.running++
	q.used += r.Seats
	q.start += work
	q.bound()
}

// settle accounts for a request of a queue that has run for a time.
func (l *Level) settle(r *Request, ran time.Duration) {
	q := r.queue
	q.running--
	q.used -= r.Seats
	q.start += (ran.Seconds() - serviceTime) * float64(r.Seats)
	q.bound()
	l.end(q)
}

// bound keeps a queue from saving up turns from before its requests arrived.
func (q *queue) bound() {
	if q.first != nil && q.start < q.first.arrival {
		q.start = q.first.arrival
	}
}
