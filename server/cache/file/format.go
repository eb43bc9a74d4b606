package file

import (
	"encoding/binary"
	"fmt"
	"math"
	"unique"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/cache/values"
)

// Directory describes the blocks of a file, as JSON.
type Directory struct {
	Maker     string // the program that wrote the file; another may pack or validate differently
	Resources []Resource
	Blocks    []Block
}

// Resource is a resource with objects in the file.
type Resource struct {
	Name         string
	Fields       []string // labels of the selectable fields, whose values are in the metadata
	Dictionaries [][]byte
}

// Block is a block of objects of one resource.
type Block struct {
	At              int // its number in the blockfile
	Resource        int
	Objects         int
	Namespace, Name string // of the first object
}

// Object is an object of a file.
type Object struct {
	Namespace, Name   string // the name of an object that was read is a view of the block
	Revision, Created int64
	Head              int
	Size              int    // of its JSON
	Meta              []byte // its packed metadata; a view of the block if it was read
	MetaAt            *byte  // when read: where the length of Meta begins, which precedes it
	Common            *packing.Common

	With  *packing.Codec // for writing: packs its value; nil: it is plain
	Value []byte         // for writing: its line, packed with With

	Dictionary int             // when read: the number of its dictionary in Resource, from 1 on; 0: its value is plain
	At         values.Location // when read: where its value is
}

// Flags at the beginning of an object.
const (
	flagSameNamespace = 1 << iota // the same namespace as the object before
	flagSameBlock                 // its value is in the same block as the one before
)

// About how many bytes a block has. A get of one object reads a block of values.
const (
	blockSize = 256 << 10
	valueSize = 16 << 10
)

// before is the object before, to which an object in a block is relative.
type before struct {
	namespace string
	any       bool // there is one
	at        uint32
	near      packing.Interner
}

// append appends an object.
func (o *Object) append(dst []byte, before *before) []byte {
	at := len(dst)
	dst = append(dst, 0)
	flags := byte(0)
	if o.Namespace == before.namespace && before.any {
		flags |= flagSameNamespace
	} else {
		dst = packing.AppendText(dst, o.Namespace)
	}
	dst = packing.AppendText(dst, o.Name)
	dst = binary.AppendUvarint(dst, uint64(o.Revision))
	dst = binary.AppendUvarint(dst, uint64(o.Created))
	if o.At.Block == before.at && before.any {
		flags |= flagSameBlock
	} else {
		dst = binary.AppendUvarint(dst, uint64(o.At.Block))
	}
	for _, n := range [...]int{o.Head, o.Dictionary, o.Size, int(o.At.Offset)} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	dst = before.near.Record(dst, o.Common)
	dst = packing.AppendText(dst, packing.View(o.Meta))
	dst[at] = flags
	before.namespace, before.at, before.any = o.Namespace, o.At.Block, true
	return dst
}

// Objects reads the objects of a block.
type Objects struct {
	left   packing.Cursor
	before before
}

// NewObjects begins with the first object of a block.
func NewObjects(block []byte) Objects { return Objects{left: packing.NewCursor(block)} }

// Left reports whether the block has more bytes.
func (r *Objects) Left() bool { return r.left.Left() > 0 }

// ErrForm means that an object has an invalid form. It is an ErrDamaged.
var ErrForm = fmt.Errorf("%w: an object in it has another form", blockfile.ErrDamaged)

// Next reads an object. Errors: ErrForm.
func (r *Objects) Next(o *Object) error {
	c := &r.left
	flags := c.Byte()
	if flags&flagSameNamespace == 0 {
		r.before.namespace = unique.Make(c.Text()).Value()
	}
	*o = Object{Namespace: r.before.namespace, Name: c.Text()}
	o.Revision, o.Created = int64(c.Number()), int64(c.Number())
	block := uint64(r.before.at)
	if flags&flagSameBlock == 0 {
		block = c.Number()
	}
	head, of, size, offset := c.Number(), c.Number(), c.Number(), c.Number()
	known := false
	o.Common, known = r.before.near.Read(c)
	if o.MetaAt = c.At(); o.MetaAt != nil {
		meta, _ := packing.TextAt(o.MetaAt, 0)
		o.Meta = packing.Bytes(meta)
	}
	switch {
	case c.Bad || !known || o.Revision <= 0 || o.Created < 0 || o.Created > o.Revision,
		head > size, block > math.MaxUint32, max(of, size, offset) >= blockfile.MostBlock:
		return ErrForm
	}
	r.before.at = uint32(block)
	o.Head, o.Dictionary, o.Size, o.At = int(head), int(of), int(size), values.Location{Block: uint32(block), Offset: uint32(offset)}
	return nil
}
