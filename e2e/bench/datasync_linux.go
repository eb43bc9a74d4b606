package main

import (
	"os"
	"syscall"
)

// dataSync waits until the disk has the written data.
func dataSync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
