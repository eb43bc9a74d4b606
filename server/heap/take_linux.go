package heap

import (
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// span is memory of the heap that was taken from the system at once.
type span struct{ from, size uintptr }

// take has the system give memory before it is needed, and leaves it to the runtime as free memory. A page that is
// met for the first time costs the process a microsecond or two, and a start meets a quarter of a million of them for
// each gigabyte. As huge pages they cost a fraction, and so does each way to an object later: the collector of garbage
// goes millions of them. Where the system refuses either, the pages come as they always do.
func take(bytes int64) span {
	room := make([]byte, bytes)
	_ = unix.Madvise(room, unix.MADV_HUGEPAGE)
	parts := int64(runtime.GOMAXPROCS(0))
	var workers sync.WaitGroup
	for part := range parts {
		some := room[bytes*part/parts&^(hugePage-1) : bytes*(part+1)/parts&^(hugePage-1)]
		workers.Go(func() { _ = unix.Madvise(some, unix.MADV_POPULATE_WRITE) })
	}
	workers.Wait()
	taken := span{uintptr(unsafe.Pointer(unsafe.SliceData(room))), uintptr(bytes)}
	runtime.GC() // room is free from here on
	return taken
}

// hugePage is the size of one in bytes; where it is another the parts of take only end elsewhere.
const hugePage = 2 << 20

// settle leaves the huge pages that there are, and has no more made: of what is used in part the system would make
// whole ones, which are resident.
func (s span) settle() {
	if s.size > 0 {
		// It is memory of the heap, which stays mapped as long as the process is. What lies there is not touched.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, s.from, s.size, unix.MADV_NOHUGEPAGE)
	}
}
