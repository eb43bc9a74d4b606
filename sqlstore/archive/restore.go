package archive

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"

	"github.com/klauspost/compress/gzip"

	"github.com/rowlock/rowlock/sqlstore"
)

// Restore fills an empty database, in one transaction: an interrupted restore, or a damaged backup, leaves it
// empty. Revisions are preserved. Errors: ErrDamaged, sqlstore.ErrNotEmpty, and those of the driver.
func Restore(ctx context.Context, d sqlstore.Driver, in io.Reader, progress func(rows int64)) (Header, Trailer, error) {
	r, err := open(in)
	if err != nil {
		return Header{}, Trailer{}, err
	}
	r.progress = progress
	floors, err := sqlstore.ParseFloors(r.header.Past, r.header.Floor)
	if err != nil {
		return Header{}, Trailer{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	err = d.Load(ctx, sqlstore.Content{
		Bounds:    sqlstore.Bounds{Floor: r.header.Floor, Head: r.header.Revision},
		Past:      floors.Past,
		Skipped:   floors.Skipped,
		ClusterID: r.header.ClusterID,
		Rows:      r.all,
	})
	return r.header, r.trailer, err
}

// Check reads a backup to its end without restoring it.
func Check(in io.Reader) (Header, Trailer, error) {
	r, err := open(in)
	if err != nil {
		return Header{}, Trailer{}, err
	}
	for _, err := range r.all {
		if err != nil {
			return r.header, Trailer{}, err
		}
	}
	return r.header, r.trailer, nil
}

// Rows reads a backup row by row, for other uses than Restore. The iteration ends with the comparison of the
// checksum; it works once.
func Rows(in io.Reader) (Header, iter.Seq2[sqlstore.Row, error], error) {
	r, err := open(in)
	if err != nil {
		return Header{}, nil, err
	}
	return r.header, r.all, nil
}

type reader struct {
	in       *bufio.Reader
	sum      hash.Hash
	header   Header
	trailer  Trailer
	rows     int64
	progress func(int64)
}

func open(in io.Reader) (*reader, error) {
	zip, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	r := &reader{in: bufio.NewReaderSize(zip, 1<<20), sum: newSum()}
	text, err := r.line()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &r.header); err != nil || r.header.Format != formatName {
		return nil, fmt.Errorf("%w: it does not begin like a backup", ErrDamaged)
	}
	if r.header.Version != formatVersion {
		return nil, fmt.Errorf("backup format %d is not known to this version", r.header.Version)
	}
	r.sum.Write(text)
	return r, nil
}

// longest is more than the largest value can take as base64.
const longest = 64 << 20

func (r *reader) line() ([]byte, error) {
	var text []byte
	for {
		part, err := r.in.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case err == nil:
			return text, nil
		case len(text) > longest:
			return nil, fmt.Errorf("%w: a line is too long", ErrDamaged)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("%w: it was cut short: %w", ErrDamaged, err)
		}
	}
}

// all yields the rows, and compares the checksum at the end.
func (r *reader) all(yield func(sqlstore.Row, error) bool) {
	for {
		text, err := r.line()
		if err != nil {
			yield(sqlstore.Row{}, err)
			return
		}
		if len(text) > 7 && string(text[:7]) == `{"rows"` {
			if err := r.finish(text); err != nil {
				yield(sqlstore.Row{}, err)
			}
			return
		}
		r.sum.Write(text)
		row, err := decode(text)
		if err == nil && (row.Revision > r.header.Revision || row.Superseded > r.header.Revision) {
			err = fmt.Errorf("%w: row %s is of revision %d, beyond the backup's", ErrDamaged, row.Key, row.Revision)
		}
		if !yield(row, err) || err != nil {
			return
		}
		if r.rows++; r.progress != nil && r.rows%page == 0 {
			r.progress(r.rows)
		}
	}
}

func (r *reader) finish(text []byte) error {
	if err := json.Unmarshal(text, &r.trailer); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if r.trailer.Rows != r.rows || r.trailer.SHA256 != sum(r.sum) {
		return fmt.Errorf("%w: its checksum does not match", ErrDamaged)
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) { // also reads gzip's own checksum
		return fmt.Errorf("%w: it continues after its end: %v", ErrDamaged, err)
	}
	return nil
}
