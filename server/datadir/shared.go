package datadir

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// shared are the files that all servers of a cluster have the same of; without the first
// three they are no servers of one cluster.
var shared = []string{"ca.crt", "ca.key", "service-account.key", "ca-cross.crt", "front-proxy-ca.crt", "front-proxy-ca.key"}

// Shared names the files that all servers of a cluster have the same of.
func Shared() []string { return slices.Clone(shared) }

// MustShare reports whether servers of one cluster always share a file; the others are there
// once they are needed.
func MustShare(name string) bool { return slices.Index(shared, name) < 3 }

// Put writes a shared file, as a whole and readable by its owner only. It fails if the file exists with
// another content, which would be lost.
func Put(path string, data []byte) error {
	if have, err := os.ReadFile(path); err == nil {
		if !bytes.Equal(have, data) {
			return fmt.Errorf("%s is there already, and differs: the folder has the keys of another cluster; choose an empty one, or move it away", filepath.Base(path))
		}
		return nil
	}
	return writeFile(path, data)
}
