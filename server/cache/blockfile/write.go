// Package blockfile keeps blocks of bytes in a file that can be read only with a key which lies
// elsewhere, in any order and by several at once.
//
// It promises: a file appears under its name whole, or not at all; each block comes back as it was
// written, or not at all: one that was changed, cut off, moved, or that comes from another file, is an
// error, as is everything with another key. Without the key the file says nothing but how long its
// blocks are. It is for its owner alone (0600).
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

// A file is: magic and name; the blocks, each sealed with its number; the directory, sealed as
// the last of them; where that begins, and its size.
const (
	magic    = "rowlock blocks 1\n"
	nameSize = 32
	headSize = len(magic) + nameSize
	tailSize = 16
	overhead = 16 // of each block
)

// Block numbers of what is no block.
const directoryNumber = math.MaxUint64

// MostBlock is how large a block may be, and MostDirectory a directory with what goes with it.
const (
	MostBlock     = 64 << 20
	MostDirectory = 256 << 20
)

// Writer makes a file. One goroutine uses it.
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

// Create begins a file that Commit puts in the place of path. A file that was begun before, and
// not ended, goes. The first half of its name is that of the file whose place it takes.
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
		w.file, err = os.OpenFile(w.draft(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
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

// Name is that of the file's content, and Key what opens it. Each file has others, but for the first half of its
// name, which all that take one another's place have.
func (w *Writer) Name() string  { return w.name }
func (w *Writer) Key() [32]byte { return w.key }

// Size is how many bytes were written.
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

// Add adds a block, which may be used again.
func (w *Writer) Add(block []byte) error {
	if len(block) > MostBlock {
		return fmt.Errorf("a block of %d bytes is larger than %d", len(block), MostBlock)
	}
	number := uint64(len(w.sizes))
	w.sizes = append(w.sizes, uint64(len(block)))
	return w.add(number, block)
}

// Finish adds what the reader is to know before it reads blocks, and brings everything to the disk.
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

// Commit puts the file, which must be finished, under its name.
func (w *Writer) Commit() error {
	if !w.whole {
		return errors.New("the file is not finished")
	}
	if err := w.file.Close(); err != nil {
		return err
	}
	w.file = nil
	if err := os.Rename(w.draft(), w.path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(w.path))
	if err != nil {
		return err
	}
	defer dir.Close()
	_ = dir.Sync() // some systems cannot; then the former file may be there after a power loss
	return nil
}

// Discard gives up a file that was not committed; afterwards it does nothing.
func (w *Writer) Discard() {
	if w.file == nil {
		return
	}
	w.file.Close()
	w.file = nil
	os.Remove(w.draft())
}
