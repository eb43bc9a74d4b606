package cache

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unique"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/server/cache/dictionary"
	"github.com/rowlock/rowlock/server/kinds"
)

// A copy is a blockfile of objects as memory has them, for the next start. Each block has objects of one
// resource, in key order; what it takes to read them is in about. A reader trusts none of it
// further than its checks go: damage is the end of the copy, and never of the process.

// about is what a copy says before its blocks, as JSON.
type about struct {
	Maker     string // the program that wrote it; another one might have packed or judged objects otherwise
	Resources []aboutResource
	Blocks    []aboutBlock
}

type aboutResource struct {
	Name         string
	Fields       []string // labels of the selectable fields, whose values lie in the metadata
	Dictionaries [][]byte
}

type aboutBlock struct {
	Resource        int
	Objects         int
	Namespace, Name string // of the first
}

// What an object in a block begins with.
const (
	copyPacked        = 1 << iota // it lies packed, and not as a line
	copySameNamespace             // as the one before
)

// copyBlock is about how many bytes of objects a block has.
const copyBlock = 1 << 20

// fieldLabels are those of a storage's selectable fields.
func fieldLabels(st *kinds.Storage) (labels []string) {
	if st != nil {
		for _, f := range st.Fields {
			labels = append(labels, f.Label)
		}
	}
	return labels
}

// copyRecord appends an item, as it lies in body b. before is the one before it in the block.
func copyRecord(dst []byte, it *Item, b *body, dictionary int, before *copyBefore) []byte {
	at := len(dst)
	dst = append(dst, 0)
	flags := byte(0)
	if it.Namespace == before.namespace && before.any {
		flags |= copySameNamespace
	} else {
		dst = appendText(dst, it.Namespace)
	}
	dst = appendText(dst, it.Name)
	dst = binary.AppendUvarint(dst, uint64(it.Revision))
	dst = binary.AppendUvarint(dst, uint64(it.Created))
	dst = binary.AppendUvarint(dst, uint64(it.head))
	if b.packed() {
		flags |= copyPacked
		for _, n := range [...]int{dictionary, int(b.size), int(b.split)} {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
		dst = before.near.record(dst, b.common)
	}
	dst = appendText(dst, view(b.data))
	dst[at] = flags
	before.namespace, before.any = it.Namespace, true
	return dst
}

// copyBefore is what an object may have in common with the one before it.
type copyBefore struct {
	namespace string
	any       bool // there is one
	near      near
}

// record appends what a packed object has in common with those before it: a number of what was seen,
// or 0 and the parts, each as a number of what has it, or 0 and its text. Who reads has seen the same, and
// need not look for what is equal.
func (n *near) record(dst []byte, c *common) []byte {
	at := 0
	if c != nil {
		if same, _ := n.find(c.labels, c.owners); same != nil {
			c = same
		}
		at = slices.Index(n.seen[:], c) + 1
	}
	if dst = append(dst, byte(at)); at > 0 {
		return dst
	}
	if c == nil {
		c = &common{}
	}
	dst = n.recordPart(dst, c.labels, labelsOf)
	dst = n.recordPart(dst, c.owners, ownersOf)
	if c.labels != "" || c.owners != "" {
		n.see(c)
	}
	return dst
}

func (n *near) recordPart(dst []byte, text string, of func(c *common) string) []byte {
	at := slices.IndexFunc(n.seen[:], func(c *common) bool { return c != nil && text != "" && of(c) == text }) + 1
	if dst = append(dst, byte(at)); at > 0 {
		return dst
	}
	return appendText(dst, text)
}

// read reads what record wrote; false if that is something else.
func (n *near) read(from *cursor) (c *common, ok bool) {
	at := int(from.byte())
	if at > mostNear {
		return nil, false
	}
	if at > 0 {
		c = n.seen[at-1]
		return c, c != nil
	}
	var made common
	labels, owners := n.readPart(from, &made.labels, labelsOf, validLabels), n.readPart(from, &made.owners, ownersOf, validOwners)
	if !labels || !owners {
		return nil, false
	}
	if made == (common{}) {
		return nil, true
	}
	c = &made
	n.see(c)
	return c, true
}

func (n *near) readPart(from *cursor, to *string, of func(c *common) string, valid func(text []byte) bool) (ok bool) {
	at := int(from.byte())
	if at > mostNear {
		return false
	}
	if at > 0 {
		c := n.seen[at-1]
		if c != nil {
			*to = of(c)
		}
		return c != nil
	}
	text := from.bytes()
	if from.bad || !valid(text) {
		return false
	}
	*to = string(text)
	return true
}

func labelsOf(c *common) string { return c.labels }
func ownersOf(c *common) string { return c.owners }

// copyReader reads the objects of a block, which is lent: items have memory of their own.
type copyReader struct {
	of     *resource
	shapes []*shape // by dictionary
	left   cursor
	before copyBefore
	names  []byte // of the objects, one behind the other
	ends   []int  // of each in names
}

// next reads an object, whose name is for name to give. fields are the values of its selectable fields, where
// they are known; they are views of the block.
func (r *copyReader) next(fields []string) (it *Item, _ []string, err error) {
	c := &r.left
	flags := c.byte()
	if flags&copySameNamespace == 0 {
		r.before.namespace = unique.Make(c.text()).Value()
	}
	r.names = append(r.names, c.bytes()...)
	r.ends = append(r.ends, len(r.names))
	both := &itemAndBody{item: Item{Namespace: r.before.namespace, home: &r.of.home}}
	it = &both.item
	it.body.Store(&both.body)
	it.Revision, it.Created, it.head = int64(c.number()), int64(c.number()), int32(c.number())
	if c.bad || it.Revision <= 0 || it.Created < 0 || it.Created > it.Revision || it.head < 0 {
		return nil, nil, errCopyForm
	}
	if flags&copyPacked == 0 {
		return it, nil, r.plain(both)
	}
	if fields, err = r.packed(both, fields); err != nil {
		return nil, nil, err
	}
	return it, fields, nil
}

// name gives the objects that were read their names, all in one text: that is one piece of memory for the collector
// instead of a thousand, and what one object that stays can hold is what the names of a block take.
func (r *copyReader) name(items []*Item) {
	all, from := string(r.names), 0
	for i, it := range items {
		it.Name, from = all[from:r.ends[i]], r.ends[i]
	}
}

var errCopyForm = fmt.Errorf("%w: an object in it has another form", blockfile.ErrDamaged)

// itemAndBody is an item and the body that it begins with: one piece of memory for the collector instead of two.
type itemAndBody struct {
	item Item
	body body
}

func (r *copyReader) plain(to *itemAndBody) error {
	line := r.left.bytes()
	if r.left.bad || len(line) < 2 || line[len(line)-1] != '\n' || int(to.item.head) >= len(line) {
		return errCopyForm
	}
	to.body.data = slices.Clone(line)
	return nil
}

func (r *copyReader) packed(to *itemAndBody, fields []string) ([]string, error) {
	c := &r.left
	of, size, split := c.number(), c.number(), c.number()
	common, known := r.before.near.read(c)
	data := c.bytes()
	if c.bad || !known || of >= uint64(len(r.shapes)) || size >= blockfile.MostBlock || split >= uint64(len(data)) || int(to.item.head) > int(size) {
		return nil, errCopyForm
	}
	if n, err := dictionary.Size(data[split:]); err != nil || n != int(size)+1 {
		return nil, errCopyForm
	}
	fields, ok := readMeta(data[:split], int(size), fields)
	st := r.shapes[of].storage
	if !ok || st != nil && len(fields) != len(st.Fields) {
		return nil, errCopyForm
	}
	b := &to.body
	b.data, b.with, b.size, b.split, b.common = slices.Clone(data), r.shapes[of], int32(size), int32(split), common
	if st == nil {
		return nil, nil
	}
	return fields, nil
}

// readMeta checks what unpackMeta will read, of an object of so many bytes, and returns the values
// of the fields.
func readMeta(b []byte, size int, fields []string) (_ []string, ok bool) {
	c := cursor{b: b}
	c.number() // flags
	from, to, n := c.number(), c.number(), c.number()
	c.bytes() // UID
	c.bytes() // creation
	if fields = fields[:0]; n > uint64(len(b)) {
		return nil, false
	}
	for range n {
		fields = append(fields, c.text())
	}
	return fields, !c.bad && len(c.b) == 0 && from <= to && to <= uint64(size)
}

// validLabels says that a text is the labels of a common.
func validLabels(text []byte) bool {
	c := cursor{b: text}
	for len(c.b) > 0 {
		c.bytes()
		c.bytes()
	}
	return !c.bad
}

// validOwners says that a text is the owners of a common.
func validOwners(text []byte) bool {
	c := cursor{b: text}
	for len(c.b) > 0 {
		c.byte()
		for range 4 {
			c.bytes()
		}
	}
	return !c.bad
}

// cursor reads bytes that may be anything. What it cannot read is empty, and bad is set.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) byte() byte {
	if len(c.b) == 0 {
		c.bad = true
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

func (c *cursor) number() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.b, c.bad = nil, true
		return 0
	}
	c.b = c.b[n:]
	return v
}

// bytes reads what appendText wrote; it is a view. A length in more bytes than it needs is none: commonReader looks at so
// many alone.
func (c *cursor) bytes() []byte {
	before := len(c.b)
	n := c.number()
	if before-len(c.b) > binary.MaxVarintLen32 || n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) text() string { return view(c.bytes()) }
