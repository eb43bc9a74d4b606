package pack

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Snapshot reads ended rows and packs as they are at one moment. Each method is one query of a driver.
type Snapshot interface {
	// Ended reads the oldest rows of a key that were written after a revision, and ended from one revision up to another; more:
	// there may be others. A row that Stays may lack its value.
	Ended(ctx context.Context, key sqlstore.Key, written, from, upTo int64, limit int) (rows []sqlstore.Row, more bool, err error)
	// Stays reports whether a row that Ended has read is not packed.
	Stays(row *sqlstore.Row) bool
	// Around reads the pack of a key that ends first after a revision; nil: there is none.
	Around(ctx context.Context, key sqlstore.Key, revision int64) (*Pack, error)
	// Below reads the packs of a key that end below a revision and above a floor, newest first.
	Below(ctx context.Context, key sqlstore.Key, revision, floor int64, limit int) ([]Pack, error)
	// NextEnded finds the first key after a key that has ended rows, NextPacked the first that has packs.
	NextEnded(ctx context.Context, after sqlstore.Key) (key sqlstore.Key, found bool, err error)
	NextPacked(ctx context.Context, after sqlstore.Key) (key sqlstore.Key, found bool, err error)
}

// AppendPast appends the packed rows of a key below a revision and above a floor, newest first, up to limit rows.
func AppendPast(ctx context.Context, s Snapshot, rows []sqlstore.Row, key sqlstore.Key, before, floor int64, limit int) ([]sqlstore.Row, error) {
	const some = 4
	var packs []Pack
	around, err := s.Around(ctx, key, before-1)
	if around != nil {
		packs = []Pack{*around}
	}
	for next := before; err == nil && len(rows) < limit; {
		for i := range packs {
			if packs[i].First >= before {
				continue
			}
			unfolded, err := packs[i].Rows()
			if err != nil {
				return nil, err
			}
			for _, row := range slices.Backward(unfolded) {
				if row.Revision < before && row.Superseded > floor && len(rows) < limit {
					rows = append(rows, row)
				}
			}
		}
		if packs, err = s.Below(ctx, key, next, floor, some); len(packs) == 0 {
			break
		}
		next = packs[len(packs)-1].Until
	}
	return rows, err
}

// Older reads rows that ended up to a revision, after a cursor, in the order of their keys and revisions, as
// History.Older does. With an error it returns the rows before it. It returns fewer rows once it has taken half of the time that ctx
// leaves: each key takes several queries, which may be slow.
func Older(ctx context.Context, s Snapshot, f sqlstore.Floors, upTo int64, after sqlstore.Cursor, limit int) (rows []sqlstore.Row, err error) {
	bytes, late := 0, halfway(ctx)
	for more := true; more && len(rows) < limit && bytes < sqlstore.ChangesBytes && (len(rows) == 0 || !late()); {
		floor := f.Of(after.Key.Resource)
		found, err := olderOf(ctx, s, after, max(floor, after.Revision), upTo, limit-len(rows))
		if err != nil {
			return rows, err
		}
		for _, row := range found {
			after.Revision = row.Revision
			if row.Superseded > floor {
				rows = append(rows, row)
				bytes += len(row.Value)
			}
		}
		if len(found) == 0 {
			if more, err = nextOlder(ctx, s, &after); err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}

// halfway reports whether half of the time that a context leaves has passed since halfway was called.
func halfway(ctx context.Context) func() bool {
	end, ok := ctx.Deadline()
	if !ok {
		return func() bool { return false }
	}
	began := time.Now()
	half := end.Sub(began) / 2
	return func() bool { return time.Since(began) >= half }
}

// olderOf reads rows of one key after a cursor: the rest of a pack, or rows that are not packed.
func olderOf(ctx context.Context, s Snapshot, after sqlstore.Cursor, from, upTo int64, limit int) (rows []sqlstore.Row, err error) {
	outside := func(row sqlstore.Row) bool { return row.Revision <= after.Revision || row.Superseded > upTo }
	for until := from; len(rows) == 0; {
		p, err := s.Around(ctx, after.Key, until)
		if err != nil {
			return nil, err
		}
		if p == nil {
			rows, _, err = s.Ended(ctx, after.Key, after.Revision, from, upTo, limit)
			return rows, err
		}
		if rows, err = p.Rows(); err != nil {
			return nil, err
		}
		rows, until = slices.DeleteFunc(rows, outside), p.Until
	}
	return rows[:min(limit, len(rows))], nil
}

// nextOlder moves a cursor to the next key that has ended rows or packs.
func nextOlder(ctx context.Context, s Snapshot, after *sqlstore.Cursor) (bool, error) {
	next, ended, err := s.NextEnded(ctx, after.Key)
	packed, found, err2 := s.NextPacked(ctx, after.Key)
	if found && (!ended || packed.Compare(next) < 0) {
		next = packed
	}
	*after = sqlstore.Cursor{Key: next}
	return ended || found, errors.Join(err, err2)
}

// Unit is the work of one transaction on ended rows of one key.
type Unit struct {
	Drop  []sqlstore.Row // below the floor: they are deleted
	Move  []sqlstore.Row // they are deleted, and are in Packs
	Last  *Pack          // the pack before them, if Packs[0] replaces it
	Packs []Pack
}

// Gather collects work for a transaction that packs rows which ended up to a revision: from a cursor on, at most
// atOnce rows of a key at a time, until it costs as much as packing limit rows, or half of the time that ctx leaves. It counts the work
// in done.
func Gather(ctx context.Context, s Snapshot, f sqlstore.Floors, upTo int64, from sqlstore.Cursor, limit, atOnce int, done *sqlstore.Packed) (units []Unit, err error) {
	done.Next = from
	late := halfway(ctx)
	for left := int64(limit) * sqlstore.PackedFor; left > 0 && ctx.Err() == nil && !late(); {
		found, more, err := s.Ended(ctx, done.Next.Key, 0, done.Next.Revision, upTo, atOnce)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			u, cost, err := newUnit(ctx, s, found, f.Of(done.Next.Key.Resource), done)
			var damaged *sqlstore.CorruptError
			stay := errors.Is(err, errStays) || errors.As(err, &damaged)
			if err != nil && !stay {
				return nil, err
			}
			if len(u.Drop)+len(u.Move) > 0 {
				units = append(units, u)
			}
			if left -= cost; !stay && (more || left <= 0) { // the next rows of this key can be read after this transaction
				done.Next.Revision = found[len(found)-1].Superseded
				return units, nil
			}
		}
		key, any, err := s.NextEnded(ctx, done.Next.Key)
		if err != nil || !any {
			done.Done = true
			return units, err
		}
		done.Next = sqlstore.Cursor{Key: key}
	}
	return units, ctx.Err()
}

// errStays: a row of a key is not packed, and no later one: the packs of a key are older than its rows.
var errStays = errors.New("a row is not packed")

// newUnit makes the unit of the oldest rows of a key, and returns its cost in the measure of PackedFor. Errors:
// errStays, and CorruptError where a row, or the pack before the rows, is damaged; the unit then has the work that can be done.
func newUnit(ctx context.Context, s Snapshot, rows []sqlstore.Row, floor int64, done *sqlstore.Packed) (u Unit, cost int64, err error) {
	kept := 0
	for kept < len(rows) && rows[kept].Superseded <= floor {
		kept++
	}
	u.Drop = rows[:kept]
	done.Deleted += len(u.Drop)
	for i := range rows {
		cost += sqlstore.PackedFor + int64(len(rows[i].Value))
	}
	move, stays := rows[kept:], error(nil)
	for i := range move {
		if s.Stays(&move[i]) {
			move, stays = move[:i], errStays
			break
		}
	}
	if len(move) == 0 {
		return u, cost, stays
	}
	for i := range move {
		if row := &move[i]; row.Damaged != nil { // otherwise the checksum of a pack would confirm it
			return u, cost, &sqlstore.CorruptError{Key: row.Key, Revision: row.Revision, Reason: row.Damaged.Error()}
		}
	}
	before, err := s.Below(ctx, move[0].Key, move[0].Revision+1, floor, 1)
	if err != nil {
		return u, cost, err
	}
	var last *Pack
	if len(before) > 0 {
		last = &before[0]
	}
	packs, extends, err := PackRows(last, move)
	if err != nil {
		return u, cost, err
	}
	u.Move, u.Packs = move, packs
	for i := range packs {
		done.Stored += int64(len(packs[i].Text))
		cost += int64(len(packs[i].Text))
	}
	if extends {
		u.Last = last
		done.Stored -= int64(len(last.Text))
	}
	done.Rows += len(move)
	for i := range move {
		done.Bytes += int64(len(move[i].Value))
	}
	return u, cost, stays
}
