package serve

import (
	"errors"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/server/datadir"
)

// useMemory replaces --in-memory by the equivalent --store.
func (o *options) useMemory() error {
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

// onDisk reports whether keys and certificates are in a folder.
func (o *options) onDisk() bool {
	return !o.inMemory || o.flags != nil && o.flags.Changed("data-dir")
}

// openDataDir opens the folder of keys and certificates, or makes them in memory.
func (o *options) openDataDir(opt datadir.Options) (*datadir.Dir, error) {
	if o.onDisk() {
		return datadir.Open(o.dataDir, opt)
	}
	return datadir.InMemory(opt)
}

// keysLocation names the place of keys and certificates for people.
func (o *options) keysLocation(dir *datadir.Dir) string {
	if o.onDisk() {
		return dir.Path
	}
	return "in memory too"
}

// servingAuthority returns the file by which clients verify the serving certificate.
func (o *options) servingAuthority(dir *datadir.Dir) string {
	if o.serving.Cert != "" {
		return o.serving.Cert
	}
	return dir.CACert
}

// ownSecrets returns the files of a data directory whose permissions no other code checks.
func ownSecrets(dir *datadir.Dir) []flagfile.File {
	var files []flagfile.File
	for _, path := range []string{dir.CAKey, dir.AdminKey, dir.AdminKubeconfig} {
		files = append(files, flagfile.New("--data-dir", path))
	}
	return files
}
