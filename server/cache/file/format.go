package file

import (
	"encoding/binary"
	"fmt"
	"unique"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/server/cache/packing"
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
	Resource        int
	Objects         int
	Namespace, Name string // of the first object
}

// Object is an object of a file.
type Object struct {
	Namespace, Name   string // the name of an object that was read is a view of the block
	Revision, Created int64
	Head              int
	Data              []byte // its line or, if packed, its metadata and its packed line; a view of the block if it was read

	With        *packing.Codec // for writing: what it is packed with; nil: plain
	Packed      bool           // when read: it is packed
	Dictionary  int            // when read: number of its dictionary in Resource
	Size, Split int            // if packed: the size of its JSON, and where its metadata ends in Data
	Common      *packing.Common
}

// Flags at the beginning of an object.
const (
	flagPacked        = 1 << iota // packed, not plain
	flagSameNamespace             // the same namespace as the object before
)

// blockSize is about how many bytes of objects a block has.
const blockSize = 1 << 20

// before is the object before, to which an object in a block is relative.
type before struct {
	namespace string
	any       bool // there is one
	near      packing.Neighbors
}

// append appends an object; dictionary is the number of its dictionary, if packed.
func (o *Object) append(dst []byte, dictionary int, before *before) []byte {
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
	dst = binary.AppendUvarint(dst, uint64(o.Head))
	if o.With != nil {
		flags |= flagPacked
		for _, n := range [...]int{dictionary, o.Size, o.Split} {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
		dst = before.near.Record(dst, o.Common)
	}
	dst = packing.AppendText(dst, packing.View(o.Data))
	dst[at] = flags
	before.namespace, before.any = o.Namespace, true
	return dst
}

// Objects reads the objects of a block.
type Objects struct {
	left   packing.Cursor
	before before
}

// NewObjects begins with the first object of a block.
func NewObjects(block []byte) Objects { return Objects{left: packing.NewCursor(block)} }

// Left says whether the block has more bytes.
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
	*o = Object{Namespace: r.before.namespace, Name: c.Text(), Packed: flags&flagPacked != 0}
	head := uint64(0)
	o.Revision, o.Created, head = int64(c.Number()), int64(c.Number()), c.Number()
	if c.Bad || o.Revision <= 0 || o.Created < 0 || o.Created > o.Revision || head >= blockfile.MostBlock {
		return ErrForm
	}
	o.Head = int(head)
	if !o.Packed {
		o.Data = c.Bytes()
		if c.Bad || len(o.Data) < 2 || o.Data[len(o.Data)-1] != '\n' || o.Head >= len(o.Data) {
			return ErrForm
		}
		return nil
	}
	of, size, split := c.Number(), c.Number(), c.Number()
	known := false
	o.Common, known = r.before.near.Read(c)
	o.Data = c.Bytes()
	if c.Bad || !known || of >= blockfile.MostBlock || size >= blockfile.MostBlock || split >= uint64(len(o.Data)) || head > size {
		return ErrForm
	}
	o.Dictionary, o.Size, o.Split = int(of), int(size), int(split)
	return nil
}
