package pack

import (
	"github.com/rowlock/rowlock/sqlstore"
)

// Replacement is a pack, and the packs that replace it.
type Replacement struct {
	Old Pack
	New []Pack
}

// ReplaceRows finds the packs that contain some rows of one object, ascending, and makes others with the given
// values of these rows. next reads the first pack of the object that ended above a revision; nil: there is
// none. loose are the rows that no pack contains. Errors: CorruptError, and those of next.
func ReplaceRows(rows []sqlstore.Row, next func(above int64) (*Pack, error)) (swaps []Replacement, loose []sqlstore.Row, err error) {
	for len(rows) > 0 {
		n := 0
		// The pack that ended at the row's revision may contain the previous row, or the delete itself.
		for above := rows[0].Revision - 1; n == 0; {
			p, err := next(above)
			if err != nil {
				return nil, nil, err
			}
			if p == nil || p.First > rows[0].Revision {
				break
			}
			var swap Replacement
			if swap, n, err = p.restated(rows); err != nil {
				return nil, nil, err
			}
			if n > 0 {
				swaps = append(swaps, swap)
			}
			above = p.Until
		}
		if n == 0 {
			loose, n = append(loose, rows[0]), 1
		}
		rows = rows[n:]
	}
	return swaps, loose, nil
}

// restated takes the first n of some rows into the pack.
func (p *Pack) restated(rows []sqlstore.Row) (swap Replacement, n int, err error) {
	has, err := p.Rows()
	if err != nil {
		return swap, 0, err
	}
	for i := range has {
		if n < len(rows) && has[i].Revision == rows[n].Revision {
			has[i].Value = rows[n].Value
			n++
		}
	}
	if n > 0 {
		swap.Old = *p
		swap.New, _, err = PackRows(nil, has)
	}
	return swap, n, err
}
