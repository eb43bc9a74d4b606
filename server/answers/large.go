package answers

import (
	"math"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/objects"
)

// NewRoom makes the gate that bounds how many bytes the answers with large objects take together. Users take turns.
func NewRoom(sizes budget.Sizes) *fair.Gate {
	return fair.NewGate(fair.Limits{Places: math.MaxInt32, Room: sizes.Answers(), Share: sizes.AnswersOfUser(), Free: 1})
}

// formWeight bounds the memory of a large object's answer per stored byte, if the answer does not have its stored bytes.
const formWeight = 8

// asStored reports whether an answer has the stored bytes of an item.
func (q *Request) asStored(as codecs.Form, it *cache.Item) bool {
	return as.Type == codecs.JSON && as.As.Kind == "" && !as.Pretty && it.Err() == nil && objects.Clean(q.Resource, it)
}

// Room waits until there is room for the large ones of some items of an answer: for the largest, because the answer makes
// their forms one after another, or for all that must be converted, because their forms are kept. The request keeps the
// room until End, because the client may read slowly.
func (a *Answers) Room(q *Request, as codecs.Form, items ...*cache.Item) error {
	if a.Large == nil {
		return nil
	}
	weight, kept := int64(0), int64(0)
	for _, it := range items {
		size := int64(it.Size())
		switch {
		case !budget.Large(int(size)):
		case q.asStored(as, it):
			weight = max(weight, size)
		case q.Resource.LoadMayFail() && !objects.Clean(q.Resource, it):
			kept += formWeight * size
		default:
			weight = max(weight, formWeight*size)
		}
	}
	weight = max(weight, kept)
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
	q.room, q.large = nil, 0
}
