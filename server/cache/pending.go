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

// Prepare makes the bytes of the item, but for the revision, of the value of a write that will probably have a revision. Otherwise
// Apply copies the value, for which all other writers wait.
func (p *Pending) Prepare(value []byte, probable int64) {
	p.draft, _ = metadata.NewDraft(value, probable) // Apply makes the same error
}

// complete makes the line of an item of the write, if that was prepared.
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
