package yield

import (
	"encoding/binary"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// awaitPoll waits until the runtime has polled the network, and scheduled the goroutines that are runnable by then.
func awaitPoll() {
	e := events.Get().(*event)
	e.await()
	events.Put(e)
}

// events holds as many descriptors as goroutines have yielded at the same time. The garbage collector closes unused ones.
var events = sync.Pool{New: func() any { return newEvent() }}

// event is a descriptor that its goroutine makes readable and waits for, so that the next poll of the network wakes the goroutine.
type event struct {
	raw    syscall.RawConn // nil if the process has no descriptor left
	wanted func(fd uintptr) (readable bool)
	sent   bool
}

func newEvent() *event {
	e := &event{}
	e.wanted = e.send
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return e
	}
	if raw, err := os.NewFile(uintptr(fd), "eventfd").SyscallConn(); err == nil {
		e.raw = raw
	}
	return e
}

// await waits for the next poll of the network. It returns at once if e has no descriptor.
func (e *event) await() {
	if e.raw == nil {
		return
	}
	e.sent = false
	_ = e.raw.Read(e.wanted)
}

// send makes the descriptor readable in its first call and returns false, after which the caller waits. Nothing ever reads the descriptor:
// the poll reports each write.
func (e *event) send(fd uintptr) bool {
	if e.sent {
		return true
	}
	e.sent = true
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, err := syscall.Write(int(fd), one[:])
	return err != nil
}
