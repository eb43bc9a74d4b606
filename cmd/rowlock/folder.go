package main

import (
	"errors"

	"github.com/rowlock/rowlock/server/datadir"
)

// defaultDataDir is --data-dir of serve and init.
const defaultDataDir = "./rowlock-data"

// remember lets --in-memory stand for a store.
func (o *serveOptions) remember() error {
	switch {
	case !o.inMemory:
	case o.store != "" && !inMemory(o.store):
		return errors.New("--in-memory: there is another --store")
	case o.initialize:
		return errors.New("--in-memory: --init is for databases in files")
	default:
		o.store = memoryStore
	}
	return nil
}

// inFolder says whether keys and certificates are kept in a folder.
func (o *serveOptions) inFolder() bool {
	return !o.inMemory || o.flags != nil && o.flags.Changed("data-dir")
}

// folder is where keys and certificates are.
func (o *serveOptions) folder(opt datadir.Options) (*datadir.Dir, error) {
	if o.inFolder() {
		return datadir.Open(o.dataDir, opt)
	}
	return datadir.InMemory(opt)
}

// keysIn says where they are to people.
func (o *serveOptions) keysIn(dir *datadir.Dir) string {
	if o.inFolder() {
		return dir.Path
	}
	return "in memory too"
}

// authority is the file with what serving certificates are checked with.
func (o *serveOptions) authority(dir *datadir.Dir) string {
	if o.serving.cert != "" {
		return o.serving.cert
	}
	return dir.CACert
}
