package etcd

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// The library that reads the file trusts it: it maps pages into memory, and follows every number in them
// wherever it leads, in circles too. So the tree of pages is walked here first, with plain reads that check
// every number; then the library can read it without leaving the file and in bounded time.

const (
	pageHeader  = 16 // id, flags, count, overflow
	elementSize = 16 // of a branch: position, key length, page; of a leaf: flags, position, key and value length
	bucketSize  = 16 // root page, sequence
	metaSize    = 64

	branchPage = 0x01
	leafPage   = 0x02
	subBucket  = 0x01 // flag of a leaf's element

	boltMagic   = 0xED0CDAED
	boltVersion = 2

	// maxDepth is far above the depth of a tree of 2^40 elements.
	maxDepth = 32
)

// pages walks the pages of a database.
type pages struct {
	r    io.ReaderAt
	size int64 // of the database in the file, bytes
	page int64 // bytes of a page
	high uint64
	seen []uint64 // a bit for each page
	buf  []byte   // elements of the present page

	elements int64 // that were read, so that none of them count twice
}

// checkPages validates a database of size bytes. Its errors wrap ErrDamaged.
func checkPages(r io.ReaderAt, size int64) error {
	p := &pages{r: r, size: size}
	root, err := p.newestMeta()
	if err != nil {
		return err
	}
	p.seen = make([]uint64, p.high/64+1)
	return p.tree(root, 0)
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// newestMeta reads the two pages that locate everything, and returns the root that the newer of
// them names.
func (p *pages) newestMeta() (root uint64, err error) {
	var newest uint64
	try := func(at int64) {
		buf := make([]byte, pageHeader+metaSize)
		if _, err := p.r.ReadAt(buf, at); err != nil {
			return
		}
		m := buf[pageHeader:]
		sum := fnv.New64a()
		sum.Write(m[:metaSize-8])
		size := int64(binary.NativeEndian.Uint32(m[8:]))
		switch {
		case binary.NativeEndian.Uint32(m) != boltMagic || binary.NativeEndian.Uint32(m[4:]) != boltVersion,
			binary.NativeEndian.Uint64(m[56:]) != sum.Sum64(),
			size < 512 || size > 1<<24 || size&(size-1) != 0,
			p.page != 0 && p.page != size:
			return
		}
		if txid := binary.NativeEndian.Uint64(m[48:]); p.page == 0 || txid > newest {
			newest, p.page = txid, size
			root, p.high = binary.NativeEndian.Uint64(m[16:]), binary.NativeEndian.Uint64(m[40:])
		}
	}
	try(0)
	if p.page != 0 {
		try(p.page)
	}
	for size := int64(1 << 10); p.page == 0 && size <= 1<<24; size <<= 1 {
		try(size)
	}
	switch {
	case p.page == 0:
		return 0, damaged("it is no database of etcd: neither of its first pages is whole")
	case p.high > uint64(p.size/p.page):
		return 0, damaged("it has %d bytes and should have %d pages of %d: it is cut off", p.size, p.high, p.page)
	}
	return root, nil
}

// tree walks the tree of a page.
func (p *pages) tree(id uint64, depth int) error {
	if depth > maxDepth {
		return damaged("page %d lies more than %d pages deep", id, maxDepth)
	}
	flags, elements, room, err := p.read(id)
	if err != nil {
		return err
	}
	var below []uint64
	if flags == leafPage {
		below, err = p.leaf(elements, room, int64(id)*p.page+pageHeader)
	} else {
		below, err = branch(elements, room, id)
	}
	if err != nil {
		return err
	}
	for _, child := range below {
		if err := p.tree(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// branch returns the pages below a branch.
func branch(elements []byte, room int64, id uint64) ([]uint64, error) {
	if len(elements) == 0 {
		return nil, damaged("page %d branches into nothing", id)
	}
	children := make([]uint64, 0, len(elements)/elementSize)
	for off := 0; off < len(elements); off += elementSize {
		e := elements[off:]
		if int64(off)+u32(e)+u32(e[4:]) > room {
			return nil, damaged("a key of page %d ends beyond it", id)
		}
		children = append(children, binary.NativeEndian.Uint64(e[8:]))
	}
	return children, nil
}

// read reads the head of a page that was not visited before: its elements, valid until the next page is read,
// and the number of bytes for them and their data.
func (p *pages) read(id uint64) (flags uint16, elements []byte, room int64, err error) {
	if id < 2 || id >= p.high {
		return 0, nil, 0, damaged("it refers to page %d of %d", id, p.high)
	}
	var head [pageHeader]byte
	if _, err := p.r.ReadAt(head[:], int64(id)*p.page); err != nil {
		return 0, nil, 0, fmt.Errorf("reading page %d: %w", id, err)
	}
	flags, count := binary.NativeEndian.Uint16(head[8:]), int64(binary.NativeEndian.Uint16(head[10:]))
	overflow := uint64(binary.NativeEndian.Uint32(head[12:]))
	switch {
	case binary.NativeEndian.Uint64(head[:]) != id:
		return 0, nil, 0, damaged("page %d says that it is another", id)
	case flags != branchPage && flags != leafPage:
		return 0, nil, 0, damaged("page %d is of no known kind", id)
	case id+overflow >= p.high:
		return 0, nil, 0, damaged("page %d ends beyond the file", id)
	}
	for at := id; at <= id+overflow; at++ {
		if p.seen[at/64]&(1<<(at%64)) != 0 {
			return 0, nil, 0, damaged("page %d is used twice", at)
		}
		p.seen[at/64] |= 1 << (at % 64)
	}
	room = int64(overflow+1)*p.page - pageHeader
	if count*elementSize > room {
		return 0, nil, 0, damaged("page %d has room for %d bytes and not for %d elements", id, room, count)
	}
	if p.elements += count; p.elements > p.size/elementSize {
		return 0, nil, 0, damaged("it counts more elements than it has room for")
	}
	if int64(cap(p.buf)) < count*elementSize {
		p.buf = make([]byte, count*elementSize)
	}
	elements = p.buf[:count*elementSize]
	if _, err := p.r.ReadAt(elements, int64(id)*p.page+pageHeader); err != nil {
		return 0, nil, 0, fmt.Errorf("reading page %d: %w", id, err)
	}
	return flags, elements, room, nil
}

// leaf checks the elements of a leaf, which begin at an offset of the file, and returns
// the pages of the buckets among them.
func (p *pages) leaf(elements []byte, room, at int64) (buckets []uint64, err error) {
	for off := 0; off < len(elements); off += elementSize {
		e := elements[off:]
		valueAt, length := int64(off)+u32(e[4:])+u32(e[8:]), u32(e[12:])
		if valueAt+length > room {
			return nil, damaged("a value of a leaf ends beyond it")
		}
		if u32(e)&subBucket == 0 {
			continue
		}
		if length < bucketSize {
			return nil, damaged("a bucket has a head of %d bytes", length)
		}
		var head [bucketSize]byte
		if _, err := p.r.ReadAt(head[:], at+valueAt); err != nil {
			return nil, fmt.Errorf("reading a bucket: %w", err)
		}
		if root := binary.NativeEndian.Uint64(head[:]); root != 0 {
			buckets = append(buckets, root)
		} else if err := p.inline(at+valueAt+bucketSize, length-bucketSize); err != nil {
			return nil, err
		}
	}
	return buckets, nil
}

// inline checks a bucket that is small enough to lie in its parent's leaf.
func (p *pages) inline(at, length int64) error {
	if length < pageHeader {
		return damaged("a bucket has a page of %d bytes", length)
	}
	var head [pageHeader]byte
	if _, err := p.r.ReadAt(head[:], at); err != nil {
		return fmt.Errorf("reading a bucket: %w", err)
	}
	count, room := int64(binary.NativeEndian.Uint16(head[10:])), length-pageHeader
	p.elements += count
	if binary.NativeEndian.Uint16(head[8:]) != leafPage || count*elementSize > room || p.elements > p.size/elementSize {
		return damaged("a bucket has no whole leaf")
	}
	elements := make([]byte, count*elementSize)
	if _, err := p.r.ReadAt(elements, at+pageHeader); err != nil {
		return fmt.Errorf("reading a bucket: %w", err)
	}
	for off := 0; off < len(elements); off += elementSize {
		e := elements[off:]
		if u32(e)&subBucket != 0 || int64(off)+u32(e[4:])+u32(e[8:])+u32(e[12:]) > room {
			return damaged("a value of a bucket ends beyond it")
		}
	}
	return nil
}

func u32(b []byte) int64 { return int64(binary.NativeEndian.Uint32(b)) }
