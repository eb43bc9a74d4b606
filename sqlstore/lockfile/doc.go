// Package lockfile has one process at a time hold a file of a name.
//
// It promises: what a process took is free again when it ends, however it ends.
package lockfile
