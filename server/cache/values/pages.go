package values

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// Pages are the blocks that were read last. Each of its parts has a lock and a part of the bytes.
type Pages struct {
	files  atomic.Uint64
	failed atomic.Int64
	part   [16]part
	rooms  sync.Pool // of *[]byte
}

// NewPages makes Pages of at most that many bytes, in addition to blocks that are being read.
func NewPages(most int) *Pages {
	p := &Pages{}
	for i := range p.part {
		p.part[i] = part{most: most / len(p.part), recent: list.New(), at: map[pageKey]*list.Element{}}
	}
	return p
}

// Failed counts the values that could not be read.
func (p *Pages) Failed() int64 { return p.failed.Load() }

// Bytes returns the size of the blocks that are kept.
func (p *Pages) Bytes() (n int) {
	for i := range p.part {
		at := &p.part[i]
		at.mu.Lock()
		n += at.bytes
		at.mu.Unlock()
	}
	return n
}

type pageKey struct {
	file  uint64
	block uint32
}

type part struct {
	mu     sync.Mutex
	most   int
	bytes  int
	recent *list.List // of *Page, the latest first
	at     map[pageKey]*list.Element
}

// Page is a block in memory.
type Page struct {
	key  pageKey
	data []byte
	of   *Pages
	uses atomic.Int32 // by readers and by Pages; the memory is free at zero
}

// Release ends the use of a page and of views of it.
func (p *Page) Release() {
	if p.uses.Add(-1) == 0 && cap(p.data) <= maxReusedBuffer {
		p.of.rooms.Put(&p.data)
	}
}

// maxReusedBuffer is the largest memory that is used again for another block.
const maxReusedBuffer = 64 << 10

// page returns a block for one more reader.
func (p *Pages) page(f *File, block uint32) (*Page, error) {
	key := pageKey{f.id, block}
	in := &p.part[(uint64(block)+f.id)%uint64(len(p.part))]
	if have := in.find(key); have != nil {
		return have, nil
	}
	var room []byte
	if old, ok := p.rooms.Get().(*[]byte); ok {
		room = *old
	}
	data, err := f.blocks.Block(int(block), room)
	if err != nil {
		return nil, err
	}
	made := &Page{key: key, data: data, of: p}
	made.uses.Store(1)
	in.keep(made)
	return made, nil
}

func (in *part) find(key pageKey) *Page {
	in.mu.Lock()
	defer in.mu.Unlock()
	e := in.at[key]
	if e == nil {
		return nil
	}
	in.recent.MoveToFront(e)
	p := e.Value.(*Page)
	p.uses.Add(1)
	return p
}

// keep keeps a page, unless it would displace most others or another reader was faster, and drops those not read for longest.
func (in *part) keep(p *Page) {
	if cap(p.data) > in.most/4 {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.at[p.key] != nil {
		return
	}
	p.uses.Add(1)
	in.at[p.key] = in.recent.PushFront(p)
	for in.bytes += cap(p.data); in.bytes > in.most; {
		old := in.recent.Remove(in.recent.Back()).(*Page)
		delete(in.at, old.key)
		in.bytes -= cap(old.data)
		old.Release()
	}
}
