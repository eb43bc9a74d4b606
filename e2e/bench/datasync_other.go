//go:build !linux

package main

import "os"

// dataSync waits until the disk has what was written, and what is known of the file.
func dataSync(f *os.File) error { return f.Sync() }
