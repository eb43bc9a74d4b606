package packing

import "sync/atomic"

// Budget counts the bytes of plain objects and forms of a cache, and bounds them.
type Budget struct {
	Limit atomic.Int64 // the bound; negative: none
	Total atomic.Int64 // as of the last round
	Grown atomic.Int64 // since

	Messages atomic.Int64 // packed Protobuf forms, as of the last round and since
}

// Used returns about how many bytes are plain.
func (p *Budget) Used() int64 { return p.Total.Load() + p.Grown.Load() }

// HasMessageSpace reports whether there is room for n more bytes of packed messages, which may take half of the budget.
func (p *Budget) HasMessageSpace(n int) bool {
	return p == nil || p.Limit.Load() < 0 || p.Messages.Load()+int64(n) <= p.Limit.Load()/2
}

// MessagesNearLimit reports whether packed messages take nearly all of their room.
func (p *Budget) MessagesNearLimit() bool {
	return p != nil && p.Limit.Load() >= 0 && p.Messages.Load() > p.Limit.Load()/16*7
}

// RoundDue reports whether a round of packing is due, because much was added since the last.
func (p *Budget) RoundDue() bool {
	return p.Limit.Load() >= 0 && p.Used()+p.Messages.Load() >= p.Limit.Load() && p.Grown.Load() > p.Limit.Load()/16
}

// RoundUrgent reports whether a round cannot wait, because twice as much is plain as may be.
func (p *Budget) RoundUrgent() bool {
	return p.Limit.Load() >= 0 && p.Used()+p.Messages.Load() >= 2*p.Limit.Load()
}

// AboveLowWatermark reports whether a round would probably pack something.
func (p *Budget) AboveLowWatermark() bool { return p.Limit.Load() >= 0 && p.Used() > p.Limit.Load()/4 }

// Available reports whether another object or form may be plain. Grow counts it.
func (p *Budget) Available() bool {
	return p == nil || p.Limit.Load() < 0 || p.Used()+p.Messages.Load() < p.Limit.Load()
}
func (p *Budget) Grow(n int) {
	if p != nil {
		p.Grown.Add(int64(n))
	}
}
