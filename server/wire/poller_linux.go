package wire

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// newEpoll makes an epoll descriptor for which the runtime's poller waits; nil if it cannot be made.
func newEpoll() *os.File {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd) // nothing was added to it
		return nil
	}
	return os.NewFile(uintptr(fd), "epoll")
}

// addEpoll has one event reported for a descriptor. Closing the descriptor removes it.
func addEpoll(epoll *os.File, fd uintptr, id uint64) (err error) {
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP | 1<<30, Fd: int32(id), Pad: int32(id >> 32)} // 1<<30: EPOLLONESHOT
	raw, err := epoll.SyscallConn()
	if err != nil {
		return err
	}
	closed := raw.Control(func(set uintptr) {
		if err = syscall.EpollCtl(int(set), syscall.EPOLL_CTL_MOD, int(fd), &event); err == syscall.ENOENT {
			err = syscall.EpollCtl(int(set), syscall.EPOLL_CTL_ADD, int(fd), &event)
		}
	})
	if closed != nil {
		return closed
	}
	return err
}

// waitEpoll calls f for each event until the descriptor is closed.
func waitEpoll(epoll *os.File, f func(id uint64)) {
	raw, err := epoll.SyscallConn()
	if err != nil {
		return
	}
	events := make([]syscall.EpollEvent, 128)
	for {
		n := 0
		if raw.Read(func(fd uintptr) bool {
			n, err = syscall.EpollWait(int(fd), events, 0)
			return n > 0 || err != nil
		}) != nil {
			return
		}
		for _, e := range events[:max(n, 0)] {
			f(uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32)
		}
	}
}

// closed reports whether the client has closed the connection, whatever it has sent before.
func closed(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}
