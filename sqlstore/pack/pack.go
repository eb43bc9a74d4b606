// Package pack stores the past states of one object in few bytes, as text that plain SQL can unpack, and holds the
// algorithms by which the SQL drivers read and pack history.
//
// It returns each value byte for byte, and any read of a damaged pack fails. A pack holds consecutive rows of one
// life of an object: each row ends where the next begins, and only the last can be a delete. Each row is stored as
// its difference from the first one, so that reading it needs no other row. A value that is not JSON, such as an
// encrypted one, is stored whole.
package pack

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/rowlock/rowlock/sqlstore"
)

const (
	// MaxRows and MaxBytes are the size up to which a pack grows, and so the cost of reading one state.
	MaxRows  = 128
	MaxBytes = 64 << 10
	// poor is the size of a list of edits that no new pack is begun for.
	poor = 96
	// maxUnfolded bounds the memory for the rows of a pack in addition to three times its text: a base to
	// which more than two rows refer is not longer than MaxBytes.
	maxUnfolded = (MaxRows + 1) * 2 * MaxBytes
)

// Pack is consecutive ended rows of one life of an object.
type Pack struct {
	Key     sqlstore.Key
	First   int64 // revision of its first row
	Until   int64 // revision that ended its last row
	Created int64
	Deleted bool // its last row records a delete
	Count   int
	Written time.Time // when its first row was
	Text    []byte    // see content
	Place   int64     // the driver's number of the stored pack; 0 for a new one
}

// content is the text of a pack. Rows are lists: the revision and the time in microseconds, both relative to
// the first row; the value; and its expiry in microseconds since 1970, if it has one. A value is a list of
// edits or a whole value.
type content struct {
	Base string            `json:"base"`
	Rows []json.RawMessage `json:"rows"`
	Sum  uint32            `json:"sum"` // CRC-32 of all values, each with a zero byte behind it
	All  *uint32           `json:"all"` // CRC-32 of the stored columns and of the text; see sign
}

// whole is a value that is no JSON.
type whole struct {
	Size   int     `json:"size"`
	Sealed *string `json:"sealed,omitempty"` // provider and name of the key, as views show them
	Bytes  []byte  `json:"bytes"`
}

// PackRows makes packs of ended rows of one object, oldest first. last is the pack before
// them, if there is one: where it is small and the rows go on from it, it comes back within the first,
// and extends is true. A pack before them that is damaged stays as it is. Errors: CorruptError where
// the first row is a delete, which belongs into that pack.
func PackRows(last *Pack, rows []sqlstore.Row) (packs []Pack, extends bool, err error) {
	if last != nil && last.continues(&rows[0]) {
		before, err := last.Rows()
		switch {
		case err == nil:
			rows, extends = append(before, rows...), true
		case rows[0].Deleted: // no other pack can end where the damaged one does
			return nil, false, err
		}
	}
	for len(rows) > 0 {
		p, n := fold(rows)
		packs, rows = append(packs, p), rows[n:]
	}
	return packs, extends, nil
}

// continues reports whether a row can be added to the pack. A row that records a delete is always added if
// possible: it ended at the same revision as the row before it, and no two packs of a key contain the same
// revision.
func (p *Pack) continues(row *sqlstore.Row) bool {
	room := row.Deleted || p.Count < MaxRows*3/4 && len(p.Text) < MaxBytes/2
	return room && !p.Deleted && p.Until == row.Revision && p.Created == row.Created
}

// fold makes one pack of the first rows, as many as belong into it.
func fold(rows []sqlstore.Row) (Pack, int) {
	first := &rows[0]
	f := packBuilder{first: first}
	plain := isText(first.Value)
	f.out = append(f.out, `{"base":`...)
	if plain {
		f.out = appendString(f.out, string(first.Value))
		f.begin(first.Value)
	} else {
		f.out = append(f.out, `""`...)
	}
	f.out = append(f.out, `,"rows":[`...)
	n := 0
	for n < len(rows) && (n < MaxRows || rows[n].Deleted) && (n == 0 || f.follows(&rows[n-1], &rows[n])) && f.add(&rows[n], plain, n == 0) {
		n++
	}
	last := &rows[n-1]
	f.out = append(f.out, `],"sum":`...)
	p := Pack{
		Key: first.Key, First: first.Revision, Until: last.Superseded, Created: first.Created, Deleted: last.Deleted,
		Count: n, Written: first.WrittenAt, Text: strconv.AppendUint(f.out, uint64(f.sum), 10),
	}
	p.sign()
	return p, n
}

type packBuilder struct {
	first *sqlstore.Row
	ascii base[byte]
	runes *base[rune] // of a base that is not ASCII, or when a text is not
	text  []byte
	plain bool // text is ASCII
	out   []byte
	sum   uint32
}

func (f *packBuilder) begin(text []byte) {
	f.text, f.plain, f.ascii.text = text, isASCII(text), text
}

// follows reports whether a row begins where another one ended.
func (f *packBuilder) follows(before, row *sqlstore.Row) bool {
	return !before.Deleted && before.Superseded == row.Revision && row.Created == f.first.Created
}

// add appends a row, unless it is better off as the first of a pack of its own.
func (f *packBuilder) add(row *sqlstore.Row, plain, first bool) bool {
	forced := first || row.Deleted // see continues
	if !forced && len(f.out) > MaxBytes {
		return false
	}
	text := isText(row.Value)
	if text != plain && !forced {
		return false
	}
	start := len(f.out)
	if !first {
		f.out = append(f.out, ',')
	}
	f.out = strconv.AppendInt(append(f.out, '['), row.Revision-f.first.Revision, 10)
	f.out = strconv.AppendInt(append(f.out, ','), row.WrittenAt.UnixMicro()-f.first.WrittenAt.UnixMicro(), 10)
	f.out = append(f.out, ',')
	value := len(f.out)
	if text {
		f.out = f.edits(f.out, row.Value)
	} else {
		f.out = appendWhole(f.out, row.Value)
	}
	size := len(f.out) - value
	if !row.ExpiresAt.IsZero() {
		f.out = strconv.AppendInt(append(f.out, ','), row.ExpiresAt.UnixMicro(), 10)
	}
	f.out = append(f.out, ']')
	if !forced && (text && size > max(len(row.Value)/2, poor) || len(f.out) > MaxBytes) {
		f.out = f.out[:start]
		return false
	}
	f.sum = addSum(f.sum, row.Value)
	return true
}

func (f *packBuilder) edits(out, value []byte) []byte {
	if f.plain && isASCII(value) {
		return f.ascii.edits(out, value)
	}
	if f.runes == nil {
		f.runes = &base[rune]{text: []rune(string(f.text))}
	}
	return f.runes.edits(out, []rune(string(value)))
}

func addSum(sum uint32, value []byte) uint32 {
	return crc32.Update(crc32.Update(sum, crc32.IEEETable, value), crc32.IEEETable, []byte{0})
}

// isText reports whether a value is shown as JSON by the views.
func isText(value []byte) bool { return json.Valid(value) && utf8.Valid(value) }

func appendWhole(out, value []byte) []byte {
	w := whole{Size: len(value), Bytes: value, Sealed: sealedBy(value)}
	text, _ := json.Marshal(w) // cannot fail
	return append(out, text...)
}

// sealedBy returns the key information of a value for the views, or nil if it is not encrypted.
func sealedBy(value []byte) *string {
	head, ok := bytes.CutPrefix(value, []byte(sqlstore.SealedPrefix))
	if !ok {
		return nil
	}
	var key string
	if parts := bytes.SplitN(head[:min(len(head), 4096)], []byte(":"), 3); len(parts) == 3 {
		key = string(parts[0]) + ":" + string(parts[1])
	}
	return &key
}

// Rows returns all rows of the pack, oldest first. Errors: CorruptError.
func (p *Pack) Rows() ([]sqlstore.Row, error) {
	c, err := p.content()
	if err != nil {
		return nil, err
	}
	rows := make([]sqlstore.Row, len(c.Rows))
	var sum uint32
	size := 0
	for i := range c.Rows {
		if rows[i], err = p.row(c, i); err != nil {
			return nil, err
		}
		if size += len(rows[i].Value); size > maxUnfolded+3*len(p.Text) {
			return nil, p.damaged("its rows are too large to lie in one pack")
		}
		sum = addSum(sum, rows[i].Value)
	}
	if sum != c.Sum || len(rows) != p.Count || rows[0].Revision != p.First {
		return nil, p.damaged("its rows do not match its checksum")
	}
	return rows, nil
}

// At returns the row that held at a revision, if the pack has one. It unfolds that row alone, out of a pack
// that is as it was written. Errors: CorruptError.
func (p *Pack) At(revision int64) (row sqlstore.Row, found bool, err error) {
	if revision < p.First || revision >= p.Until {
		return row, false, nil
	}
	c, err := p.content()
	if err == nil && c.All == nil { // its values alone have a checksum
		_, err = p.Rows()
	}
	if err != nil {
		return row, false, err
	}
	at := 0
	for i := range c.Rows {
		offset, _, err := head(c.Rows[i])
		if err != nil {
			return row, false, p.damaged(err.Error())
		}
		if p.First+offset > revision {
			break
		}
		at = i
	}
	if row, err = p.row(c, at); err == nil && (row.Revision > revision || row.Superseded <= revision) {
		err = p.damaged("its rows do not follow one another")
	}
	return row, err == nil, err
}

func (p *Pack) content() (*content, error) {
	var c content
	if err := json.Unmarshal(p.Text, &c); err != nil {
		return nil, p.damaged(err.Error())
	}
	if n := len(c.Rows); n == 0 || n > MaxRows+1 || n != p.Count {
		return nil, p.damaged(fmt.Sprintf("it has %d rows, and is said to have %d", n, p.Count))
	}
	if c.All != nil {
		// Of several members of that name the last counts, as in JSON. Nothing follows it.
		at := max(0, bytes.LastIndex(p.Text, []byte(allName)))
		if string(p.Text[at:]) != ending(*c.All) || p.all(p.Text[:at]) != *c.All {
			return nil, p.damaged("it does not match its checksum")
		}
	}
	return &c, nil
}

// allName precedes the checksum of the whole pack, at the end of its text.
const allName = `,"all":`

// sign ends the text of a pack with a checksum that a reader of one row can verify cheaply.
func (p *Pack) sign() { p.Text = append(p.Text, ending(p.all(p.Text))...) }

func ending(sum uint32) string { return allName + strconv.FormatUint(uint64(sum), 10) + "}" }

// all returns the checksum of a pack: of its columns, and of its text up to allName.
func (p *Pack) all(text []byte) uint32 {
	head := fmt.Appendf(nil, "%q %q %q %d %d %d %t %d %d\n", p.Key.Resource, p.Key.Namespace, p.Key.Name, p.First, p.Until, p.Created, p.Deleted, p.Count, p.Written.UnixMicro())
	return crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, text)
}

// head returns the first number of a row, and the rest of the row.
func head(row json.RawMessage) (int64, []json.RawMessage, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(row, &parts); err != nil {
		return 0, nil, err
	}
	if len(parts) < 3 {
		return 0, nil, fmt.Errorf("a row has %d parts", len(parts))
	}
	offset, err := strconv.ParseInt(string(parts[0]), 10, 64)
	return offset, parts[1:], err
}

func (p *Pack) row(c *content, i int) (sqlstore.Row, error) {
	offset, parts, err := head(c.Rows[i])
	if err != nil {
		return sqlstore.Row{}, p.damaged(err.Error())
	}
	r := sqlstore.Row{Key: p.Key, Revision: p.First + offset, Created: p.Created, Superseded: p.Until}
	if i+1 < len(c.Rows) {
		next, _, err := head(c.Rows[i+1])
		if err != nil {
			return r, p.damaged(err.Error())
		}
		r.Superseded = p.First + next
	} else {
		r.Deleted = p.Deleted
	}
	micros, err := strconv.ParseInt(string(parts[0]), 10, 64)
	if err != nil {
		return r, p.damaged(err.Error())
	}
	r.WrittenAt = time.UnixMicro(p.Written.UnixMicro() + micros).UTC()
	if len(parts) > 2 {
		expires, err := strconv.ParseInt(string(parts[2]), 10, 64)
		if err != nil {
			return r, p.damaged(err.Error())
		}
		r.ExpiresAt = time.UnixMicro(expires).UTC()
	}
	if r.Value, err = unfold(c.Base, parts[1]); err != nil {
		return r, p.damaged(err.Error())
	}
	return r, nil
}

func unfold(base string, value json.RawMessage) ([]byte, error) {
	if value[0] == '[' {
		return apply(base, value)
	}
	var w struct {
		Bytes string `json:"bytes"`
	}
	if err := json.Unmarshal(value, &w); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(w.Bytes)
}

// damaged names the pack by the revision behind which reading can go on.
func (p *Pack) damaged(reason string) error {
	return &sqlstore.CorruptError{Key: p.Key, Revision: p.Until, Reason: "packed history: " + reason}
}
