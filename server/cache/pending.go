package cache

import (
	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/tracing"
)

// Pending travels as sqlstore.Op.Aux from a writer to Apply, which sets Item before the write is acknowledged. So the
// writer answers with the same item that readers see.
type Pending struct {
	Item   *Item
	Commit *tracing.Span // of the write, where it is traced
	draft  *metadata.Draft
}

// Prepare makes the bytes of the item except for the revision, which will probably be the given one. Without Prepare, Apply copies the
// value, and all other writers wait for that.
func (p *Pending) Prepare(value []byte, probable int64) {
	p.draft, _ = metadata.NewDraft(value, probable) // Apply makes the same error
}

// complete sets the line of an item from the draft, and returns false if Prepare has made none that fits.
func (p *Pending) complete(it *Item) bool {
	if p == nil || p.draft == nil {
		return false
	}
	line, head, ok := p.draft.Complete(it.Revision)
	if p.draft = nil; ok {
		it.setLine(line, head, nil)
	}
	return ok
}
