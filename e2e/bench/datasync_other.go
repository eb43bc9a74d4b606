//go:build !linux

package main

import "os"

// dataSync waits until the disk has the written data, and the metadata of the file.
func dataSync(f *os.File) error { return f.Sync() }
