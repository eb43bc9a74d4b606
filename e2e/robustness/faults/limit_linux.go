package faults

import "golang.org/x/sys/unix"

// prlimit reads and sets a limit of another process.
func prlimit(pid, resource int, to, old *unix.Rlimit) error {
	return unix.Prlimit(pid, resource, to, old)
}
