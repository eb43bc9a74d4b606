package fieldset

import "sync"

// Memory is the memory of sets. Sets live until it is released, so they must not leave the call that
// allocated it.
type Memory struct {
	stack Set // branches whose siblings are not complete
	arena Set // those that are
	text  []byte
}

var memories = sync.Pool{New: func() any { return &Memory{} }}

// NewMemory takes memory from a pool. Release it.
func NewMemory() *Memory { return memories.Get().(*Memory) }

// maxPooled limits the capacity of a Memory that returns to the pool, in branches.
const maxPooled = 1 << 10

// maxText is the longest text for which it has room.
const maxText = 16 << 10

// Release forgets all sets and gives the memory back.
func (m *Memory) Release() {
	clear(m.stack)
	clear(m.arena)
	m.stack, m.arena = m.stack[:0], m.arena[:0]
	if cap(m.arena) <= maxPooled && cap(m.text) <= maxText {
		memories.Put(m)
	}
}

// Text returns a set as Append writes it, until the next call.
func (m *Memory) Text(s Set) []byte {
	m.text = s.Append(m.text[:0])
	return m.text
}

// take moves the branches that were pushed since mark from the stack to the arena, where
// they stay.
func (m *Memory) take(mark int) Set {
	if len(m.stack) == mark {
		return nil
	}
	taken := m.stack[mark:]
	if cap(m.arena)-len(m.arena) < len(taken) {
		// Sets that are in the old arena keep it alive as long as they are in use.
		m.arena = make(Set, 0, max(64, 2*cap(m.arena), 2*len(taken)))
	}
	start := len(m.arena)
	m.arena = append(m.arena, taken...)
	clear(taken) // behind the end of the stack there is nothing to forget
	m.stack = m.stack[:mark]
	return m.arena[start:len(m.arena):len(m.arena)]
}
