package blockfile

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
)

// ErrDamaged means that a file is not as it was written, was not written by this package, or has another key.
var ErrDamaged = errors.New("the file is damaged, or another one")

// File is an open file. Block may be called by several goroutines at once.
type File struct {
	file *os.File
	size int64
	name string
	seal cipher.AEAD

	places []place
}

type place struct {
	at   int64
	size int
}

// Open opens a file and reads its name. Errors: ErrDamaged, and those of the system.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{file: file}
	if err := f.begin(); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func (f *File) begin() error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if f.size = info.Size(); !info.Mode().IsRegular() || f.size < int64(headSize+overhead+tailSize) {
		return ErrDamaged
	}
	head := make([]byte, headSize)
	if _, err := f.file.ReadAt(head, 0); err != nil {
		return err
	}
	if string(head[:len(magic)]) != magic {
		return ErrDamaged
	}
	f.name = string(head[len(magic):])
	return nil
}

// Name identifies the content.
func (f *File) Name() string { return f.name }

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return f.size }

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Unseal takes the key, and returns the argument of Finish. Errors: ErrDamaged, and those of the system.
func (f *File) Unseal(key [32]byte) (about []byte, err error) {
	if f.seal, err = sealer(key); err != nil {
		return nil, err
	}
	tail := make([]byte, tailSize)
	if _, err := f.file.ReadAt(tail, f.size-tailSize); err != nil {
		return nil, err
	}
	at, size := binary.BigEndian.Uint64(tail), binary.BigEndian.Uint64(tail[8:])
	if size > MostDirectory || at < uint64(headSize) || at > uint64(f.size) || at+size+overhead+tailSize != uint64(f.size) {
		return nil, ErrDamaged
	}
	directory, err := f.open(directoryNumber, place{int64(at), int(size)}, nil)
	if err != nil {
		return nil, err
	}
	return f.locate(directory, int64(at))
}

// locate finds the places of the blocks, which end at end.
func (f *File) locate(directory []byte, end int64) (about []byte, err error) {
	next := func() (v uint64) {
		v, n := binary.Uvarint(directory)
		if n <= 0 {
			err = ErrDamaged
			return 0
		}
		directory = directory[n:]
		return v
	}
	count := next()
	if count > uint64(len(directory)) {
		return nil, ErrDamaged
	}
	f.places = make([]place, 0, count)
	at := int64(headSize)
	for range count {
		size := next()
		if err != nil || size > MostBlock || at+int64(size)+overhead > end {
			return nil, ErrDamaged
		}
		f.places = append(f.places, place{at, int(size)})
		at += int64(size) + overhead
	}
	if err != nil || at != end {
		return nil, ErrDamaged
	}
	return directory, nil
}

// Blocks returns the number of blocks, once the file is unsealed.
func (f *File) Blocks() int { return len(f.places) }

// BlockSize returns the size of a block.
func (f *File) BlockSize(i int) int { return f.places[i].size }

// Block reads a block into room, which it grows if necessary. Errors: ErrDamaged, and those of the system.
func (f *File) Block(i int, room []byte) ([]byte, error) {
	if i < 0 || i >= len(f.places) {
		return nil, fmt.Errorf("%w: it has no block %d", ErrDamaged, i)
	}
	return f.open(uint64(i), f.places[i], room)
}

func (f *File) open(number uint64, at place, room []byte) ([]byte, error) {
	n := at.size + overhead
	room = slices.Grow(room[:0], n)[:n]
	if _, err := f.file.ReadAt(room, at.at); err != nil {
		return nil, err
	}
	out, err := f.seal.Open(room[:0], nonce(number), room, []byte(magic+f.name))
	if err != nil {
		return nil, fmt.Errorf("%w: block %d", ErrDamaged, int64(number))
	}
	return out, nil
}
