package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/sqlstore"
)

// ErrOtherMaker: a cache file was written by another program, which may be another version of this one.
var ErrOtherMaker = errors.New("the cache file was written by another version of the program")

// File is a cache file that is open, and that the database attests to.
type File struct {
	Directory Directory
	file      *blockfile.File
}

// Open opens the file at cfg.Path if the database attests to it.
// One that has objects of what is to be left out now is removed, whoever wrote it: encryption may
// have been turned on since, and what lies there would not be encrypted as is wanted.
// Errors: ErrNotAttested, ErrOtherMaker, ErrLeftOut, blockfile.ErrDamaged, and those of the system.
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
	if err := json.Unmarshal(text, &p.Directory); err != nil || len(p.Directory.Blocks) != file.Blocks() {
		return nil, fmt.Errorf("%w: its directory", blockfile.ErrDamaged)
	}
	for _, b := range p.Directory.Blocks {
		if b.Resource < 0 || b.Resource >= len(p.Directory.Resources) {
			return nil, fmt.Errorf("%w: its directory", blockfile.ErrDamaged)
		}
		if name := p.Directory.Resources[b.Resource].Name; cfg.Leave(name) {
			file.Close()
			return nil, errors.Join(fmt.Errorf("%w: %s", ErrLeftOut, name), os.Remove(cfg.Path))
		}
	}
	if p.Directory.Maker != cfg.Maker {
		return nil, ErrOtherMaker
	}
	return p, nil
}

// ErrLeftOut: a cache file had objects that must not be in one any more, and was removed.
var ErrLeftOut = errors.New("the cache file had objects that are not to be in one any more, and is removed")

// ErrNotAttested: the file is of another database, of another epoch, or of a later state of this one than it is in now.
var ErrNotAttested = errors.New("the database does not attest to the cache file")

// Size is the file's, in bytes.
func (p *File) Size() int64 { return p.file.Size() }

// besides is about how many bytes an object takes beside its bytes in a file: itself, its body, its places in the trees.
const besides = 320

// Memory is about how many bytes the objects will take.
func (p *File) Memory() int64 {
	objects := 0
	for _, b := range p.Directory.Blocks {
		objects += max(0, b.Objects)
	}
	return p.file.Size() + besides*min(int64(objects), p.file.Size()) // none is shorter than a byte
}

// Close ends reading.
func (p *File) Close() error { return p.file.Close() }

// Block reads a block into room, which grows as it needs to.
func (p *File) Block(i int, room []byte) ([]byte, error) { return p.file.Block(i, room) }
