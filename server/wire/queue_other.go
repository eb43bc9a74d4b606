//go:build !unix

package wire

// canTryWrite: on this system only a call that may block can write.
const canTryWrite = false

func tryWrite(uintptr, []byte) (int, error) { return 0, nil }

func readable(uintptr) bool { return true }
