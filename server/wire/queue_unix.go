//go:build unix

package wire

import "syscall"

// canTryWrite means that tryWrite works on this system.
const canTryWrite = true

// tryWrite writes as much as the kernel has room for. The descriptor does not block.
func tryWrite(fd uintptr, p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := syscall.Write(int(fd), p[done:])
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return done, nil
		case err != nil:
			return done, err
		default:
			done += n
		}
	}
	return done, nil
}

// readable reports whether something can be read without waiting: bytes, the end, or an error.
func readable(fd uintptr) bool {
	var one [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		if err != syscall.EINTR {
			return err != syscall.EAGAIN
		}
	}
}
