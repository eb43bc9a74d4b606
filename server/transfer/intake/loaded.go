package intake

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
)

// scanPage is the number of rows in a page of a scan.
const scanPage = 50

// MayBeFinished reports whether an earlier run left its results, for whichever job.
func MayBeFinished(path string) bool {
	info, err := os.Stat(path + foundEnd)
	return err == nil && info.Mode().IsRegular()
}

// Loaded reports whether a database holds exactly the rows that Load puts there and nothing was written
// since: then the run that read the spool ended before it could remove the spool. It reads both to their
// ends, unless the database's revisions differ. Errors: archive.ErrDamaged, and those of the driver.
func (s *Spooled) Loaded(ctx context.Context, d sqlstore.Driver) (bool, error) {
	b, err := d.Bounds(ctx)
	if err != nil || b != (sqlstore.Bounds{Floor: s.Head, Head: s.Head}) {
		return false, err
	}
	f, err := os.Open(s.Path + rowsEnd)
	if err != nil {
		return false, fmt.Errorf("the file between: %w", err)
	}
	defer f.Close()
	_, rows, err := archive.Rows(f)
	if err != nil {
		return false, err
	}
	var want, have digest
	for row, err := range s.numbered(rows, nil) {
		if err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		want.add(&row)
	}
	for req := (sqlstore.ScanRequest{Limit: scanPage, Bytes: sqlstore.ChangesBytes}); ; {
		page, err := d.Scan(ctx, req)
		if err != nil {
			return false, err
		}
		for i := range page {
			have.add(&page[i])
		}
		if req.Ends(page) {
			return have == want, nil
		}
		req.After = page[len(page)-1].Key
	}
}

// digest identifies rows in any order: a source has another order than the
// database.
type digest struct {
	rows int64
	sum  [sha256.Size / 8]uint64 // of the hashes of the rows, word by word
}

func (g *digest) add(row *sqlstore.Row) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %d %d ", row.Key.Resource, row.Key.Namespace, row.Key.Name, row.Revision, row.Created)
	h.Write(row.Value)
	one := h.Sum(nil)
	for i := range g.sum {
		g.sum[i] += binary.BigEndian.Uint64(one[8*i:])
	}
	g.rows++
}
