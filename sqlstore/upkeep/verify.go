package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/rowlock/rowlock/sqlstore"
)

// Report is the result of Verify.
type Report struct {
	From     int64     `json:"from"` // checked revisions
	To       int64     `json:"to"`
	Objects  int64     `json:"objects"`
	Older    int64     `json:"older"` // rows of history before From, packed or not
	Changes  int64     `json:"changes"`
	Problems []Problem `json:"problems"` // the first hundred
	Count    int64     `json:"count"`    // of all problems
}

// Problem is one broken promise.
type Problem struct {
	Key      string `json:"key,omitempty"`
	Revision int64  `json:"revision"`
	Reason   string `json:"reason"`
}

func (r *Report) add(key sqlstore.Key, revision int64, format string, args ...any) {
	if r.Count++; len(r.Problems) < 100 {
		r.Problems = append(r.Problems, Problem{Key: key.String(), Revision: revision, Reason: fmt.Sprintf(format, args...)})
	}
}

// known is the state of one live key according to the log.
type known struct{ revision, created int64 }

// maxWindows bounds how often Verify starts again because a server compacts the revisions that it reads.
const maxWindows = 5

// Verify checks the promises of the table on live data: the log has no hole,
// each change names rightly what it replaced, playing the log leads to the live
// objects, and each value decodes. decode judges a value (nil: it must be a JSON
// object); rows are given to it once more where a running server compacts the revisions that
// are checked, and Verify begins again with the rest. The error is one of reading; faults of the
// data are in the Report.
func Verify(ctx context.Context, d sqlstore.Driver, decode func(sqlstore.Row) error) (*Report, error) {
	if decode == nil {
		decode = decodeJSON
	}
	for window := 1; ; window++ {
		report, err := verify(ctx, d, decode)
		if _, ok := errors.AsType[*sqlstore.CompactedError](err); ok && window < maxWindows {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("verifying: %w", err)
		}
		return report, nil
	}
}

// verify looks at one window of revisions.
func verify(ctx context.Context, d sqlstore.Driver, decode func(sqlstore.Row) error) (*Report, error) {
	window, release, err := Hold(ctx, d)
	if err != nil {
		return nil, err
	}
	defer release()
	v := verifier{Report: Report{From: window.Floor, To: window.Head}, decode: decode, live: make(map[sqlstore.Key]known), damaged: make(map[int64]bool)}
	if err := v.whole(ctx, d); err != nil {
		return nil, err
	}
	if err := v.older(ctx, d); err != nil {
		return nil, err
	}
	if err := v.run(ctx, d); err != nil {
		return nil, err
	}
	return &v.Report, nil
}

type verifier struct {
	Report
	damaged map[int64]bool // revisions of rows that were reported
	decode  func(sqlstore.Row) error
	live    map[sqlstore.Key]known
}

// whole holds the table to its checksums and indexes, where the driver can: a row that the table has lost is in no list.
func (v *verifier) whole(ctx context.Context, d sqlstore.Driver) error {
	if !d.ChecksRows() || v.To == 0 {
		return nil
	}
	var mu sync.Mutex
	damaged := func(rows []sqlstore.Row) error {
		mu.Lock()
		defer mu.Unlock()
		for i := range rows {
			if rows[i].Damaged != nil {
				v.damage(rows[i])
			}
		}
		return nil
	}
	return d.CheckRows(ctx, true, damaged)
}

// damage reports a damaged row once, however often it is read.
func (v *verifier) damage(row sqlstore.Row) {
	if !v.damaged[row.Revision] {
		v.damaged[row.Revision] = true
		v.add(row.Key, row.Revision, "%v", row.Damaged)
	}
}

func (v *verifier) run(ctx context.Context, d sqlstore.Driver) error {
	err := Snapshot(ctx, d, v.From, func(rows []sqlstore.Row) error {
		for _, row := range rows {
			v.row(row)
			v.live[row.Key] = known{row.Revision, row.Created}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for after := v.From; after < v.To; {
		log, err := d.Changes(ctx, after, int(min(1000, v.To-after)), false)
		if corrupt, ok := errors.AsType[*sqlstore.CorruptError](err); ok { // what follows cannot be judged
			v.add(corrupt.Key, corrupt.Revision, "%s", corrupt.Reason)
			return nil
		}
		if err != nil {
			return err
		}
		if len(log) == 0 {
			v.add(sqlstore.Key{}, after+1, "the log ends before its head")
			return nil
		}
		for _, c := range log {
			v.change(c, after+1)
			after++
		}
	}
	err = Snapshot(ctx, d, v.To, func(rows []sqlstore.Row) error {
		for _, row := range rows {
			v.Objects++
			if k, ok := v.live[row.Key]; !ok || k.revision != row.Revision || k.created != row.Created {
				v.add(row.Key, row.Revision, "the log leads to revision %d, created by %d", k.revision, k.created)
			}
			delete(v.live, row.Key)
		}
		return nil
	})
	for key, k := range v.live {
		v.add(key, k.revision, "is missing among the objects")
	}
	return err
}

// older checks the history before the log: each pack unfolds to the rows of its checksum, each
// row of an object ends where the next begins, or later after a delete, and each value decodes.
func (v *verifier) older(ctx context.Context, d sqlstore.Driver) error {
	var last sqlstore.Row
	var after sqlstore.Cursor
	for {
		rows, err := d.Older(ctx, v.From, after, 1000)
		if corrupt, ok := errors.AsType[*sqlstore.CorruptError](err); ok && behind(corrupt, after) {
			v.add(corrupt.Key, corrupt.Revision, "%s", corrupt.Reason)
			after, last = sqlstore.Cursor{Key: corrupt.Key, Revision: corrupt.Revision}, sqlstore.Row{}
			continue
		}
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			v.Older++
			v.row(row)
			if same := row.Key == last.Key; same && !last.Deleted && row.Revision != last.Superseded {
				v.add(row.Key, row.Revision, "follows revision %d, which ended at %d", last.Revision, last.Superseded)
			} else if same && (row.Created == last.Created) == last.Deleted {
				v.add(row.Key, row.Revision, "created by %d, the row before by %d", row.Created, last.Created)
			}
			last = row
		}
		after = sqlstore.Cursor{Key: last.Key, Revision: last.Revision}
	}
}

// behind reports whether reading can go on after the damage: it is not where reading stopped the last time.
func behind(c *sqlstore.CorruptError, after sqlstore.Cursor) bool {
	by := c.Key.Compare(after.Key)
	return c.Key != (sqlstore.Key{}) && (by > 0 || by == 0 && c.Revision > after.Revision)
}

func (v *verifier) row(row sqlstore.Row) {
	if row.Superseded != 0 && row.Superseded <= row.Revision && !row.Deleted {
		v.add(row.Key, row.Revision, "ended by the older revision %d", row.Superseded)
	}
	if row.Damaged != nil {
		v.damage(row)
	} else if err := v.decode(row); err != nil {
		v.add(row.Key, row.Revision, "%v", err)
	}
}

func (v *verifier) change(c sqlstore.Change, want int64) {
	v.Changes++
	if c.Revision != want {
		v.add(c.Key, c.Revision, "stands in the log where revision %d belongs", want)
	}
	v.row(c.Row)
	before, had := v.live[c.Key]
	switch {
	case c.PrevRevision != before.revision:
		v.add(c.Key, c.Revision, "replaces revision %d, the log says %d", c.PrevRevision, before.revision)
	case had && c.Created != before.created:
		v.add(c.Key, c.Revision, "created by %d, the row before by %d", c.Created, before.created)
	case !had && (c.Created != c.Revision || c.Deleted):
		v.add(c.Key, c.Revision, "follows nothing and is no create")
	}
	if c.Deleted {
		if c.Superseded != c.Revision {
			v.add(c.Key, c.Revision, "is a delete that did not end at once")
		}
		delete(v.live, c.Key)
		return
	}
	v.live[c.Key] = known{c.Revision, c.Created}
}

func decodeJSON(row sqlstore.Row) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(row.Value, &object); err != nil {
		return fmt.Errorf("its value is not an object: %w", err)
	}
	return nil
}
