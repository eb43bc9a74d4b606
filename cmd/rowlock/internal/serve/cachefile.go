package serve

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/server"
)

// cacheFileOptions are the flags of the cache file.
type cacheFileOptions struct {
	file string
	from int
}

func (o *cacheFileOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.file, "cache-file", "auto", "file with a copy of the objects in memory, from which the next start reads those that the database lists as live: auto (next to the SQLite file; with PostgreSQL in the data directory), a path, or off. It does not contain Secrets, nor objects that are encrypted in the database. After rows were edited by SQL, start once with off or run store verify --rebuild-cache")
	f.IntVar(&o.from, "cache-file-from", 50_000, "number of objects from which on the cache file is written; with fewer a start is as fast without it")
}

// build determines the path of the file; url names the database, and folder is the data directory.
func (o *cacheFileOptions) build(url, folder string) (server.CacheFile, error) {
	c := server.CacheFile{Path: o.file, Least: o.from}
	if o.from < 1 {
		return c, fmt.Errorf("--cache-file-from: %d is not positive", o.from)
	}
	path, isFile := database.SQLitePath(url)
	switch {
	case o.file == "":
		return c, errors.New("--cache-file: want auto, a path, or off")
	case o.file == "off", o.file == "auto" && database.IsInMemory(url):
		c.Path = ""
	case database.IsInMemory(url):
		return c, errors.New("--cache-file: a store in memory is lost before the next start, and a cache file is useless without it: want off")
	case o.file == "auto" && isFile:
		c.Path = database.CacheFileOf(path)
	case o.file == "auto":
		c.Path = filepath.Join(folder, "postgres-cache")
	default:
		path, err := filepath.Abs(o.file)
		if err != nil {
			return c, fmt.Errorf("--cache-file: %w", err)
		}
		c.Path = path
	}
	return c, nil
}
