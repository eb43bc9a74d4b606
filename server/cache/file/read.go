package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/sqlstore"
)

// ErrOtherVersion means that another program has written the file, or another version of this one.
var ErrOtherVersion = errors.New("the cache file was written by another version of the program")

// File is an open cache file that the database has attested.
type File struct {
	Directory Directory
	file      *blockfile.File
	kept      bool
}

// Open opens the file at cfg.Path if the database attests to it.
// It removes a file with objects of resources that must not be in a file any more: their encryption may have been configured
// since.
// Errors: ErrNotAttested, ErrOtherVersion, ErrExcluded, blockfile.ErrDamaged, and those of the system.
func Open(cfg *Config, known *sqlstore.CacheFiles) (_ *File, err error) {
	file, err := blockfile.Open(cfg.Path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	key, ok := known.Key(file.Name())
	if !ok {
		return nil, ErrNotAttested
	}
	text, err := file.Unseal(key)
	if err != nil {
		return nil, err
	}
	p := &File{file: file}
	if err := json.Unmarshal(text, &p.Directory); err != nil {
		return nil, fmt.Errorf("%w: its directory", blockfile.ErrDamaged)
	}
	for _, b := range p.Directory.Blocks {
		if b.At < 0 || b.At >= file.Blocks() || b.Resource < 0 || b.Resource >= len(p.Directory.Resources) {
			return nil, fmt.Errorf("%w: its directory", blockfile.ErrDamaged)
		}
		if name := p.Directory.Resources[b.Resource].Name; cfg.Leave(name) {
			file.Close()
			return nil, errors.Join(fmt.Errorf("%w: %s", ErrExcluded, name), os.Remove(cfg.Path))
		}
	}
	if p.Directory.Maker != cfg.Maker {
		return nil, ErrOtherVersion
	}
	return p, nil
}

// ErrExcluded means that the file had objects that must not be in a file any more. It was removed.
var ErrExcluded = errors.New("the cache file had objects that are not to be in one any more, and is removed")

// ErrNotAttested means that the file is of another database, of another epoch, or of a later state of this one.
var ErrNotAttested = errors.New("the database does not attest to the cache file")

// Size returns the size of the file in bytes.
func (p *File) Size() int64 { return p.file.Size() }

// itemOverhead is about how many bytes an object takes on top of those in its block: its item, its body, its
// entries in trees.
const itemOverhead = 200

// Memory returns about how many bytes the objects will take, without their values.
func (p *File) Memory() (bytes int64) {
	for _, b := range p.Directory.Blocks {
		size := p.file.BlockSize(b.At)
		bytes += int64(size + itemOverhead*min(max(0, b.Objects), size)) // each takes at least a byte of the block
	}
	return bytes
}

// Blocks returns the file by block, for reading values.
func (p *File) Blocks() *blockfile.File { return p.file }

// Keep leaves the file open after Close, for readers of values.
func (p *File) Keep() { p.kept = true }

// Close closes the file, unless it is kept.
func (p *File) Close() error {
	if p.kept {
		return nil
	}
	return p.file.Close()
}

// Block reads a block of Directory.Blocks into room, which it grows if necessary.
func (p *File) Block(i int, room []byte) ([]byte, error) {
	return p.file.Block(p.Directory.Blocks[i].At, room)
}
