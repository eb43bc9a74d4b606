// Package blockfile reads and writes files of encrypted blocks. Blocks can be read in any order and concurrently.
//
// A file appears under its name whole or not at all. A block that was changed, truncated, moved, or copied from another file
// is an error, as is any block with another key. Without the key a file shows only the sizes of its blocks. Only its owner
// can access it (0600).
package blockfile

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// A file has the magic and the name; the blocks, each sealed with its number; the directory, sealed as the last block; and the
// offset and size of the directory.
const (
	magic    = "rowlock blocks 1\n"
	nameSize = 32
	headSize = len(magic) + nameSize
	tailSize = 16
	overhead = 16 // of each block
)

// Numbers for sealing that belong to no block.
const directoryNumber = math.MaxUint64

// MostBlock bounds the size of a block, MostDirectory that of the directory with the argument of Finish.
const (
	MostBlock     = 64 << 20
	MostDirectory = 256 << 20
)

// Writer writes a file. It is for one goroutine.
type Writer struct {
	path   string
	file   *os.File
	to     *bufio.Writer
	name   string
	key    [32]byte
	seal   cipher.AEAD
	sealed []byte // room
	sizes  []uint64
	at     int64
	whole  bool
}

// Create begins a file that Commit renames to path. It removes a file that was begun before and not committed. The new file has
// the first half of the name of the file that it replaces.
func Create(path string) (*Writer, error) {
	w := &Writer{path: path}
	var name [nameSize / 2]byte
	rand.Read(name[:])
	rand.Read(w.key[:])
	if before, err := Open(path); err == nil {
		if place, err := hex.DecodeString(before.Name()); err == nil {
			copy(name[:len(name)/2], place)
		}
		before.Close()
	}
	w.name = hex.EncodeToString(name[:])
	var err error
	if w.seal, err = sealer(w.key); err != nil {
		return nil, err
	}
	if err = os.Remove(w.draft()); err == nil || errors.Is(err, os.ErrNotExist) {
		w.file, err = os.OpenFile(w.draft(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return nil, err
	}
	w.to = bufio.NewWriterSize(w.file, 1<<20)
	if err := w.write([]byte(magic + w.name)); err != nil {
		w.Discard()
		return nil, err
	}
	return w, nil
}

func (w *Writer) draft() string { return w.path + ".new" }

// Name identifies the content of the file, and Key unseals it. Each file has its own, but files that replace one another share
// the first half of the name.
func (w *Writer) Name() string  { return w.name }
func (w *Writer) Key() [32]byte { return w.key }

// Size returns the number of bytes written.
func (w *Writer) Size() int64 { return w.at }

func sealer(key [32]byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func nonce(number uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 4, 12), number) }

func (w *Writer) write(b []byte) error {
	n, err := w.to.Write(b)
	w.at += int64(n)
	return err
}

func (w *Writer) add(number uint64, b []byte) error {
	w.sealed = w.seal.Seal(w.sealed[:0], nonce(number), b, []byte(magic+w.name))
	return w.write(w.sealed)
}

// Blocks returns the number of blocks so far, and the number of the next one.
func (w *Writer) Blocks() int { return len(w.sizes) }

// Add adds a block. It does not keep it.
func (w *Writer) Add(block []byte) error {
	if len(block) > MostBlock {
		return fmt.Errorf("a block of %d bytes is larger than %d", len(block), MostBlock)
	}
	number := uint64(len(w.sizes))
	w.sizes = append(w.sizes, uint64(len(block)))
	return w.add(number, block)
}

// Finish adds a text for Unseal to return, and makes the file durable.
func (w *Writer) Finish(about []byte) error {
	directory := binary.AppendUvarint(nil, uint64(len(w.sizes)))
	for _, n := range w.sizes {
		directory = binary.AppendUvarint(directory, n)
	}
	directory = append(directory, about...)
	if len(directory) > MostDirectory {
		return fmt.Errorf("a directory of %d bytes is larger than %d", len(directory), MostDirectory)
	}
	at := w.at
	if err := w.add(directoryNumber, directory); err != nil {
		return err
	}
	tail := binary.BigEndian.AppendUint64(nil, uint64(at))
	tail = binary.BigEndian.AppendUint64(tail, uint64(len(directory)))
	if err := w.write(tail); err != nil {
		return err
	}
	if err := w.to.Flush(); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	w.whole = true
	return nil
}

// Commit renames the finished file to its path, and returns it for reading.
func (w *Writer) Commit() (*File, error) {
	if !w.whole {
		return nil, errors.New("the file is not finished")
	}
	if err := os.Rename(w.draft(), w.path); err != nil {
		return nil, err
	}
	f := &File{file: w.file, size: w.at, name: w.name, seal: w.seal}
	at := int64(headSize)
	for _, size := range w.sizes {
		f.places = append(f.places, place{at, int(size)})
		at += int64(size) + overhead
	}
	w.file = nil
	dir, err := os.Open(filepath.Dir(w.path))
	if err != nil {
		f.Close()
		return nil, err
	}
	defer dir.Close()
	_ = dir.Sync() // where this is unsupported, the former file may be back after a power loss
	return f, nil
}

// Discard removes a file that was not committed.
func (w *Writer) Discard() {
	if w.file == nil {
		return
	}
	w.file.Close()
	w.file = nil
	os.Remove(w.draft())
}
