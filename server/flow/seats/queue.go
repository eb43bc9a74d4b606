package seats

import "time"

// serviceTime is how long a request is expected to run, in seconds, until it is known.
const serviceTime = 0.003

// queue holds requests of the flows that were dealt it, in the order of their arrival.
type queue struct {
	index       int
	first, last *Request
	length      int
	seats       int     // that the waiting requests want
	work        float64 // seat-seconds of the waiting requests
	running     int     // requests of it that have seats
	used        int     // their seats
	start       float64 // virtual time at which its next request begins
	at          int     // in the level's backlog; -1: no request waits
}

// deal chooses the queue of a flow: of its hand, the one in which the least work waits.
func (l *Level) deal(hash uint64) *queue {
	decks := min(l.config.Queues, mostQueues)
	if len(l.queues) < decks {
		l.queues = append(l.queues, make([]*queue, decks-len(l.queues))...)
	}
	var buf [mostHand]int
	hand := deal(buf[:0], hash, decks, min(l.config.Hand, decks, mostHand))
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

// deal appends a hand of different cards from a deck, as a hash says.
func deal(hand []int, hash uint64, deck, n int) []int {
	for i := range n {
		left := uint64(deck - i)
		card := int(hash % left)
		hash /= left
		// card is the place among those that are left: each smaller one that was dealt
		// moves it on. hand is kept in order.
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

// begin makes a queue active that has had nothing to do: what it had before is forgotten.
func (l *Level) begin(q *queue) {
	if q.running == 0 && q.length == 0 {
		l.active++
		q.start = l.virtual
	}
}

// end makes a queue inactive that has nothing to do any more.
func (l *Level) end(q *queue) {
	if q.running == 0 && q.length == 0 {
		l.active--
	}
}

// enqueue has a request wait in its queue.
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

// dequeue takes a request from its queue, to run or to leave. The queue may be without
// work afterwards: end must follow.
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

// next finds the next request of the queue that has had the least: whose next request would be
// done first, had each active queue been served at the same rate.
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

// charge notes that a request of a queue begins to run.
func (l *Level) charge(r *Request, work float64) {
	q := r.queue
	l.ran, l.latest = l.virtual, q.start
	q.running++
	q.used += r.Seats
	q.start += work
	q.bound()
}

// settle notes that a request of a queue has run for a time.
func (l *Level) settle(r *Request, ran time.Duration) {
	q := r.queue
	q.running--
	q.used -= r.Seats
	q.start += (ran.Seconds() - serviceTime) * float64(r.Seats)
	q.bound()
	l.end(q)
}

// bound has a queue not save up turns from before its requests were there.
func (q *queue) bound() {
	if q.first != nil && q.start < q.first.arrival {
		q.start = q.first.arrival
	}
}
