//go:build unix

package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Folder returns the folder of a server's files. Options.Files fills it.
func (c *Cluster) Folder(i int) string { return filepath.Dir(c.nodes[i].options.DataDir) }

// KeyFile returns the path of the file in which the traffic keeps all encryption keys, for commands that read the database.
func (c *Cluster) KeyFile() string { return filepath.Join(c.opts.Dir, "keys.json") }

// Keys returns the flags with which a command reads encrypted values; none if nothing is encrypted.
func (c *Cluster) Keys() []string {
	if _, err := os.Stat(c.KeyFile()); err != nil {
		return nil
	}
	return []string{"--encryption-provider-config", c.KeyFile()}
}

// FindText returns a file of the servers or of SQLite that contains one of the texts; "" if there is none. It skips the databases of
// NewDatabase: imports into them come from an export, which is not encrypted.
func (c *Cluster) FindText(texts ...string) (file string, err error) {
	roots := []string{filepath.Join(c.opts.Dir, "db")}
	for i := range c.nodes {
		roots = append(roots, c.Folder(i))
	}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case d.IsDir() && strings.HasPrefix(d.Name(), extraDatabase):
				return fs.SkipDir
			case strings.HasSuffix(d.Name(), sharedMemory):
				return nil
			case !d.Type().IsRegular() || file != "":
				return nil
			}
			found, err := fileHas(path, texts)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if found {
				file = path
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("looking for a text in files: %w", err)
		}
	}
	return file, nil
}

// sharedMemory ends the name of the index of SQLite's log, which has no content of rows. Closing the file would end the locks on it that
// other goroutines hold: a server that starts would truncate it while they read it through a mapping, and end this program.
const sharedMemory = "-shm"

// piece is the number of bytes of a file that fileHas reads at a time.
const piece = 1 << 20

// fileHas reports whether a file contains one of some texts.
func fileHas(path string, texts []string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	longest := 0
	for _, t := range texts {
		longest = max(longest, len(t))
	}
	buf, kept := make([]byte, longest+piece), 0
	for {
		n, err := io.ReadFull(f, buf[kept:kept+piece])
		for _, t := range texts {
			if bytes.Contains(buf[:kept+n], []byte(t)) {
				return true, nil
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		kept = copy(buf, buf[max(0, kept+n-longest):kept+n])
	}
}
