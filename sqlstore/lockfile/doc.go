// Package lockfile lets one process at a time hold a named file. The file is free again when the process ends,
// however it ends.
package lockfile
