package sqlite

import (
	"sync"

	"modernc.org/libc"
)

// largestSlot is the largest piece of memory that SQLite's allocator (modernc.org/memory)
// cuts out of a page that it shares with others of about its size.
const largestSlot = 16 << 10

// holdSlots takes one piece of memory of each size class, for the life of the process. The
// allocator gives a page of 64 KiB back to the system when nothing of it is in use, and asks for
// another with the next piece: reading a value of 4 KB, if it is the only one of its
// size, would cost two system calls and a page fault each time. With a piece held the page stays.
var holdSlots = sync.OnceFunc(func() {
	tls := libc.NewTLS()
	defer tls.Close()
	for size := libc.Tsize_t(16); size <= largestSlot; size *= 2 {
		libc.Xmalloc(tls, size) // if there is no memory for it, SQLite will say so
	}
})
