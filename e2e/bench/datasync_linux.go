package main

import (
	"os"
	"syscall"
)

// dataSync waits until the disk has what was written.
func dataSync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
