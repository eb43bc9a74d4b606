package sqlite

import (
	"sync"

	"modernc.org/libc"
)

// largestSlot is the largest piece of memory that SQLite's allocator (modernc.org/memory) takes from a page
// shared by pieces of about its size.
const largestSlot = 16 << 10

// holdSlots takes one piece of memory of each size class, for the life of the process. The allocator returns
// a page of 64 KiB to the system when no piece of it is in use, and requests another one for the next piece:
// reading a value of 4 KB, if it is the only one of its size, would cost two system calls and a page fault
// each time. A held piece keeps the page.
var holdSlots = sync.OnceFunc(func() {
	tls := libc.NewTLS()
	defer tls.Close()
	for size := libc.Tsize_t(16); size <= largestSlot; size *= 2 {
		libc.Xmalloc(tls, size) // if there is no memory for it, SQLite will report that
	}
})
