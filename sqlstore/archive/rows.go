package archive

import (
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/rowlock/rowlock/sqlstore"
)

// Writer makes a file in the form of a backup of rows that come one by one, from
// elsewhere than a driver. It is for one goroutine.
type Writer struct {
	zip *gzip.Writer
	w   *writer
}

// NewWriter begins a file. No row may be of a later revision than the header's.
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	zip, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	h.Format, h.Version = formatName, formatVersion
	w := &Writer{zip: zip, w: &writer{out: zip, sum: newSum()}}
	return w, w.w.line(h)
}

// Add writes a row.
func (w *Writer) Add(row sqlstore.Row) error {
	text, err := encode(row)
	if err != nil {
		return err
	}
	w.w.rows++
	return w.w.write(text)
}

// Close ends the file with its checksum; a file without it is truncated.
func (w *Writer) Close() (Trailer, error) {
	t := Trailer{Rows: w.w.rows, SHA256: sum(w.w.sum)}
	if err := w.w.line(t); err != nil {
		return t, err
	}
	return t, w.zip.Close()
}
