// Package transcode makes the Protobuf message of an object from its JSON, without decoding the object.
//
// The bytes are those of decoding the JSON into the Go type and marshalling that, without the fields that the
// view lacks; otherwise it fails. It gives up at everything that is too rare for a fast path: types with
// their own encoding, and text that encoders do not write (white space, unknown fields, fields in another
// order). A type is analyzed once, and checked against the generated marshaller's message of an empty value.
// The text must be JSON: of values that messages carry as JSON it only finds the end.
package transcode

import (
	"reflect"
	"strings"
	"sync"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/codecs/protobuf/tagged"
	"github.com/rowlock/rowlock/codecs/view"
)

// Append appends to dst the message of the object in data, whose Go type is the struct t. On false
// nothing was appended, and the object has to be decoded.
func Append(v *view.View, dst, data []byte, t reflect.Type) (_ []byte, ok bool) {
	p := planOf(v, t)
	if p == nil {
		return dst, false
	}
	w := walks.Get().(*walk)
	defer w.release()
	w.data, w.dst = data, dst
	if end := p.message(w, 0); end != len(data) {
		return dst, false
	}
	return w.dst, true
}

// walk is one object on its way.
type walk struct {
	data, dst []byte
	marks     []mark // where the fields of messages lie that are put in order
	spare     []byte // in which they are
}

// mark is a part of walk.dst; from is -1 for a field that was not there.
type mark struct{ from, to int }

var walks = sync.Pool{New: func() any { return new(walk) }}

// maxSpare is the largest memory that is lent again.
const maxSpare = 64 << 10

func (w *walk) release() {
	w.data, w.dst = nil, nil
	w.marks, w.spare = w.marks[:0], w.spare[:0]
	if cap(w.spare) <= maxSpare {
		walks.Put(w)
	}
}

// value appends a field with its tag. It takes the index of the value's first byte, and returns the
// one after its last, or -1.
type value func(w *walk, i int) int

// plan writes the message of a struct.
type plan struct {
	fields []field // in the order of JSON
	order  []node  // in the order of the message; nil: the same
	zeros  []byte  // the message of all of them if they are missing
	zeroAt []int   // the beginning of each in zeros, and the end of the last
}

type field struct {
	quoted string // its name, with quotes and colon
	value  value  // nil: the message does not have it
	zero   []byte // the message if it is missing
	shown  []byte // zero as the view has it, which takes the place of zero once the plan is known to be right
}

// node is a field of a message, or (with a tag) a message whose fields JSON has among those around it.
type node struct {
	field int
	tag   []byte
	inner []node
}

// message appends the fields of an object, without tag and length.
func (p *plan) message(w *walk, i int) int {
	if p.order == nil {
		return p.members(w, i)
	}
	begin, marked := len(w.dst), len(w.marks)
	end := p.members(w, i)
	if end >= 0 {
		at := len(w.spare)
		w.arrange(p, p.order, w.marks[marked:])
		w.dst = append(w.dst[:begin], w.spare[at:]...)
		w.spare = w.spare[:at]
	}
	w.marks = w.marks[:marked]
	return end
}

// members appends the fields of an object in their order in the text: that of the message, or with a mark for
// each.
func (p *plan) members(w *walk, i int) int {
	data := w.data
	if i >= len(data) || data[i] != '{' {
		return -1
	}
	next := 0
	for i++; i < len(data) && data[i] != '}'; {
		at := p.find(data[i:], next)
		if at < 0 {
			return -1
		}
		p.missing(w, next, at)
		next = at + 1
		f, from := &p.fields[at], len(w.dst)
		switch i += len(f.quoted); {
		case i < len(data) && data[i] == 'n':
			i = scan.Word(data, i, "null")
			p.missing(w, at, next)
		case f.value == nil:
			i, _ = scan.String(data, i)
			p.there(w, from)
		default:
			i = f.value(w, i)
			p.there(w, from)
		}
		if i < 0 || i >= len(data) {
			return -1
		}
		if data[i] == ',' && i+1 < len(data) && data[i+1] == '"' {
			i++
		} else if data[i] != '}' {
			return -1
		}
	}
	if i >= len(data) {
		return -1
	}
	p.missing(w, next, len(p.fields))
	return i + 1
}

// missing appends missing fields, from one to before another.
func (p *plan) missing(w *walk, from, to int) {
	if p.order == nil {
		w.dst = append(w.dst, p.zeros[p.zeroAt[from]:p.zeroAt[to]]...)
		return
	}
	for ; from < to; from++ {
		w.marks = append(w.marks, mark{from: -1})
	}
}

// there means that a field was appended, from an index on.
func (p *plan) there(w *walk, from int) {
	if p.order != nil {
		w.marks = append(w.marks, mark{from, len(w.dst)})
	}
}

// find returns the field from next on whose name the text begins with, or -1: encoders write fields in
// their order.
func (p *plan) find(text []byte, next int) int {
	for at := next; at < len(p.fields); at++ {
		if name := p.fields[at].quoted; len(text) > len(name) && text[1] == name[1] && string(text[:len(name)]) == name {
			return at
		}
	}
	return -1
}

// arrange appends the nodes in message order to spare, from the marked parts of dst.
func (w *walk) arrange(p *plan, nodes []node, marks []mark) {
	for _, n := range nodes {
		if n.tag == nil {
			if m := marks[n.field]; m.from >= 0 {
				w.spare = append(w.spare, w.dst[m.from:m.to]...)
			} else {
				w.spare = append(w.spare, p.fields[n.field].zero...)
			}
			continue
		}
		w.spare = append(append(w.spare, n.tag...), 0)
		at := len(w.spare)
		w.arrange(p, n.inner, marks)
		w.spare = tagged.Measured(w.spare, at)
	}
}

// quote returns a name with the syntax before a value; ok is false for names that need escapes.
func quote(name string) (_ string, ok bool) {
	return `"` + name + `":`, name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"\<>&`, r)
	})
}
