package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// forgetFile takes the pages of a file that are written out of memory.
func forgetFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
