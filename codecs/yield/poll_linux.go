package yield

import (
	"encoding/binary"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// awaitPoll waits until the runtime has polled the network, and not longer than others take that are to run before.
func awaitPoll() {
	e := events.Get().(*event)
	e.await()
	events.Put(e)
}

// events has as many descriptors as goroutines yield at a time. The garbage collector closes unused ones.
var events = sync.Pool{New: func() any { return newEvent() }}

// event is a descriptor that its goroutine makes readable while it waits for that: the next poll of the network finds it.
type event struct {
	raw    syscall.RawConn // nil: the system has no descriptor left
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

// await returns at once if waiting is impossible.
func (e *event) await() {
	if e.raw == nil {
		return
	}
	e.sent = false
	_ = e.raw.Read(e.wanted)
}

// send makes the descriptor readable at the first call, which returns false: then the caller waits. Nothing reads the descriptor: each
// write is an event.
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
