package answers

import (
	"math"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/fair"
)

// NewRoom makes the room for answers with large objects, in bytes: those of the objects, and of what is made of
// them. Users take turns.
func NewRoom(sizes budget.Sizes) *fair.Gate {
	return fair.NewGate(fair.Limits{Places: math.MaxInt32, Room: sizes.Answers(), Share: sizes.Answers() / 2, Free: 1})
}

// formWeight is how many bytes a byte of a large object may take that is answered in another form than it is stored in.
const formWeight = 8

// Room waits until there is room for an item in an answer, if it is large. The request keeps the room until End: the
// answer may leave slowly.
func (a *Answers) Room(q *Request, as codecs.Form, it *cache.Item) error {
	size := it.Size()
	if a.Large == nil || !budget.Large(size) {
		return nil
	}
	weight := int64(size)
	if as.Type != codecs.JSON || as.As.Kind != "" || as.Pretty {
		weight *= formWeight
	}
	if weight <= q.large {
		return nil
	}
	q.Done()
	q.room.Leave() // a request that waits for room while it has some could wait for another that does so
	q.room, q.large = nil, 0
	place, err := a.Large.Enter(q.R.Context(), q.User(), weight)
	if err == nil {
		q.room, q.large = place, weight
	}
	return err
}

// End gives back all that the request has taken.
func (q *Request) End() {
	q.Done()
	q.room.Leave()
	q.room = nil
}
