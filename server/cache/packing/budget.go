package packing

import "sync/atomic"

// Budget counts the bytes of plain objects and forms of a cache, and bounds them.
type Budget struct {
	Most  int64        // the bound; negative: none
	Total atomic.Int64 // as of the last round
	Grown atomic.Int64 // since

	Messages atomic.Int64 // packed Protobuf forms, as of the last round and since
}

// Taken returns about how many bytes are plain.
func (p *Budget) Taken() int64 { return p.Total.Load() + p.Grown.Load() }

// Keeps reports whether there is room for n more bytes of packed messages, which may take half of the budget.
func (p *Budget) Keeps(n int) bool {
	return p == nil || p.Most < 0 || p.Messages.Load()+int64(n) <= p.Most/2
}

// Crammed reports whether packed messages take nearly all of their room.
func (p *Budget) Crammed() bool {
	return p != nil && p.Most >= 0 && p.Messages.Load() > p.Most/16*7
}

// Crowded reports whether a round of packing is due, because much was added since the last.
func (p *Budget) Crowded() bool {
	return p.Most >= 0 && p.Taken()+p.Messages.Load() >= p.Most && p.Grown.Load() > p.Most/16
}

// Overflows reports whether a round cannot wait, because twice as much is plain as may be.
func (p *Budget) Overflows() bool {
	return p.Most >= 0 && p.Taken()+p.Messages.Load() >= 2*p.Most
}

// Filling reports whether a round would probably pack something.
func (p *Budget) Filling() bool { return p.Most >= 0 && p.Taken() > p.Most/4 }

// Room reports whether another object or form may be plain. Grow counts it.
func (p *Budget) Room() bool {
	return p == nil || p.Most < 0 || p.Taken()+p.Messages.Load() < p.Most
}
func (p *Budget) Grow(n int) {
	if p != nil {
		p.Grown.Add(int64(n))
	}
}
