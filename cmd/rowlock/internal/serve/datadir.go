package serve

import (
	"errors"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/server/datadir"
)

// remember lets --in-memory stand for a store.
func (o *serveOptions) remember() error {
	switch {
	case !o.inMemory:
	case o.store != "" && !database.IsInMemory(o.store):
		return errors.New("--in-memory: there is another --store")
	case o.initialize:
		return errors.New("--in-memory: --init is for databases in files")
	default:
		o.store = database.InMemoryURL
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
	if o.serving.Cert != "" {
		return o.serving.Cert
	}
	return dir.CACert
}

// ownSecrets are the files of a data directory that nobody else looks after.
func ownSecrets(dir *datadir.Dir) []flagfile.File {
	var files []flagfile.File
	for _, path := range []string{dir.CAKey, dir.AdminKey, dir.AdminKubeconfig} {
		files = append(files, flagfile.New("--data-dir", path))
	}
	return files
}
