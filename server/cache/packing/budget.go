package packing

import "sync/atomic"

// Budget is what the plain objects and forms of a cache take, and may take.
type Budget struct {
	Most  int64        // what does not fit is packed; negative: nothing is
	Total atomic.Int64 // as of the last round
	Grown atomic.Int64 // since

	Messages atomic.Int64 // packed Protobuf forms, as of the last round and since
}

// Taken is how much there is by now, or a little less.
func (p *Budget) Taken() int64 { return p.Total.Load() + p.Grown.Load() }

// Keeps says whether so many bytes more of packed messages may be kept: they have half of the room at most.
func (p *Budget) Keeps(n int) bool {
	return p == nil || p.Most < 0 || p.Messages.Load()+int64(n) <= p.Most/2
}

// Crammed says that packed messages have taken nearly all that they may.
func (p *Budget) Crammed() bool {
	return p != nil && p.Most >= 0 && p.Messages.Load() > p.Most/16*7
}

// Crowded says whether a round of packing is due: much has come since the last.
func (p *Budget) Crowded() bool {
	return p.Most >= 0 && p.Taken()+p.Messages.Load() >= p.Most && p.Grown.Load() > p.Most/16
}

// Overflows says that a round is due that cannot wait: twice as much is plain as may be.
func (p *Budget) Overflows() bool {
	return p.Most >= 0 && p.Taken()+p.Messages.Load() >= 2*p.Most
}

// Filling says whether a round would find something, where most is not read any more.
func (p *Budget) Filling() bool { return p.Most >= 0 && p.Taken() > p.Most/4 }

// Room says whether more may stay as it is, and grow that it does.
func (p *Budget) Room() bool {
	return p == nil || p.Most < 0 || p.Taken()+p.Messages.Load() < p.Most
}
func (p *Budget) Grow(n int) {
	if p != nil {
		p.Grown.Add(int64(n))
	}
}
