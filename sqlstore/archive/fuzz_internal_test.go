package archive

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"github.com/rowlock/rowlock/sqlstore"
)

// FuzzRow: a row comes back from its line as it was, whatever its bytes are.
func FuzzRow(f *testing.F) {
	f.Add("pods", "ns", "a", int64(7), int64(3), []byte(`{"kind":"Pod"}`), true, int64(0))
	f.Add("~x", "", "b", int64(1), int64(1), []byte("\xff\n"), false, int64(99))
	f.Add("a.b", "", "c", int64(9), int64(2), []byte(`{"a": 1, "<&>": "  "}`), false, int64(-1))
	f.Fuzz(func(t *testing.T, resource, namespace, name string, revision, created int64, value []byte, deleted bool, expires int64) {
		row := sqlstore.Row{
			Key: sqlstore.Key{Resource: resource, Namespace: namespace, Name: name}, Revision: revision, Created: created, Value: value, Deleted: deleted,
			WrittenAt: time.Unix(5, 0).UTC(),
		}
		if expires > 0 && expires < 1<<40 {
			row.ExpiresAt = time.Unix(expires, 0).UTC()
		}
		text, err := encode(row)
		if err != nil {
			return // a time that no text can hold
		}
		if bytes.Count(text, []byte("\n")) != 1 {
			t.Fatalf("%q is not one line", text)
		}
		back, err := decode(text)
		if err != nil {
			if errors.Is(err, ErrDamaged) && (resource == "" || name == "" || revision <= 0 || created <= 0 || created > revision) {
				return
			}
			t.Fatalf("%q: %v", text, err)
		}
		if len(value) == 0 {
			row.Value, back.Value = nil, nil
		}
		for _, s := range []string{resource, namespace, name} {
			if string([]rune(s)) != s {
				return // keys are UTF-8 wherever they come from
			}
		}
		if diff := cmp.Diff(row, back); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzRead: a file that is read to its end has the content of its checksum; anything else is
// damage, and costs no more memory than the file has bytes.
func FuzzRead(f *testing.F) {
	const header = `{"format":"` + formatName + `","version":1,"revision":9,"floor":9}`
	f.Add([]byte(header + "\n" + `{"resource":"pods","name":"a","revision":3,"created":3,"value":{}}` + "\n" + `{"rows":1,"sha256":""}` + "\n"))
	f.Add([]byte(header + "\n"))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, plain := range [][]byte{text, withTrailer(text)} {
			var packed bytes.Buffer
			zip := gzip.NewWriter(&packed)
			if _, err := zip.Write(plain); err != nil {
				t.Fatal(err)
			}
			if err := zip.Close(); err != nil {
				t.Fatal(err)
			}
			h, trailer, err := Check(&packed)
			if err != nil {
				continue
			}
			if h.Format != formatName || trailer.Rows != int64(bytes.Count(plain, []byte("\n"))-2) {
				t.Fatalf("%q: %+v %+v", plain, h, trailer)
			}
		}
		_, _, _ = Check(bytes.NewReader(text))
	})
}

// withTrailer ends lines with the trailer that fits them.
func withTrailer(text []byte) []byte {
	if len(text) == 0 || text[len(text)-1] != '\n' {
		text = append(bytes.Clone(text), '\n')
	}
	hash := newSum()
	hash.Write(text)
	return fmt.Appendf(bytes.Clone(text), `{"rows":%d,"sha256":"%s"}`+"\n", bytes.Count(text, []byte("\n"))-1, sum(hash))
}
