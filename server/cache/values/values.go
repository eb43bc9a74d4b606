// Package values reads values from the blocks of a cache file on demand.
//
// Blocks stay in Pages, a bounded cache that all files share: neighbors are in one block, so a list reads each block once. A
// File has no goroutine. The cache references it as long as it has an object in it; then the garbage collector closes its
// descriptor, and the system deletes a file that another one has replaced.
package values

import (
	"fmt"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/server/cache/packing"
)

// Location is the position of a value in a file: a block, and an offset in it.
type Location struct{ Block, Offset uint32 }

// Append adds a value to a block, which begins as nil, and returns its offset.
func Append(block, value []byte) (_ []byte, offset uint32) {
	return packing.AppendText(block, packing.View(value)), uint32(len(block))
}

// File is the values of a file. Any number of goroutines may read it.
type File struct {
	id     uint64
	blocks *blockfile.File
	pages  *Pages
}

// Open prepares a file for reading. Call it before the first Read.
func (f *File) Open(blocks *blockfile.File, pages *Pages) {
	f.id, f.blocks, f.pages = pages.files.Add(1), blocks, pages
}

// Read returns a value, and the page that it is a view of: the caller calls its Release when it has read the value. Errors:
// those of blockfile.File.
func (f *File) Read(at Location) (value []byte, in *Page, err error) {
	if in, err = f.pages.page(f, at.Block); err != nil {
		f.pages.failed.Add(1)
		return nil, nil, err
	}
	if int(at.Offset) < len(in.data) {
		c := packing.NewCursor(in.data[at.Offset:])
		if value = c.Bytes(); !c.Bad {
			return value, in, nil
		}
	}
	in.Release()
	f.pages.failed.Add(1)
	return nil, nil, fmt.Errorf("%w: block %d has no value at %d", blockfile.ErrDamaged, at.Block, at.Offset)
}
