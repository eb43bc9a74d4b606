package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/cache/file"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/sqlstore"
)

// CacheFile configures the cache file. The server reads values from it on demand, and the next start does not
// have to read, verify and pack every object from the database. The server reads no file that the database
// does not attest to (sqlstore/attest.go).
type CacheFile struct {
	Path  string // "": no cache file
	Least int    // the smallest number of objects for which a file is written; default 50,000

	// Expect is called before the file is read, with the approximate memory of its objects in bytes. Reading
	// waits for it. It may be nil.
	Expect func(bytes int64)
}

// Intervals between cache files, in relation to the time that a start without them takes, and to the memory
// that values use until then.
const (
	fileLeast   = 50_000
	fileEvery   = 30 * time.Minute // the longest interval while the server runs,
	fileSoon    = 5 * time.Minute  // except while many values are in memory only
	fileLook    = time.Minute
	fileRate    = 64 << 20         // bytes a second while the server runs
	fileAtStop  = 10 * time.Second // the longest time for writing one at the end
	fileChanged = 10               // percent of the objects that the last file lacks: a new one is due
	fileMany    = 25               // the same, if there are many
	fileStale   = 1                // the same, when the server ends
)

// cacheFile writes and loads a server's cache file.
type cacheFile struct {
	cfg   CacheFile
	s     *Server
	from  sqlstore.Attestor
	epoch string // of the loaded rows; "": the database has no attestation
	maker string

	written  int64 // the last file is complete up to this revision; 0: there is no file
	loaded   atomic.Pointer[cache.Loaded]
	took     atomic.Int64 // time to load everything
	bytes    atomic.Int64 // of the last file written or read
	at       atomic.Int64 // when it was written, as a Unix time
	failures atomic.Int64
	stale    bool // the database no longer attests to the state that this server has loaded

	loads     int64  // of the cache, when the last file was written or read
	unread    int64  // values that could not be read when last counted
	broken    bool   // some could not be read since the last file was written
	lastError string // why writing the last file failed
}

func newCacheFile(s *Server) *cacheFile {
	k := &cacheFile{cfg: s.cfg.CacheFile, s: s}
	k.cfg.Least = cmp.Or(k.cfg.Least, fileLeast)
	if k.cfg.Path != "" {
		k.from = s.cfg.Store.Attestor()
	}
	return k
}

// load fills the cache, from the cache file if a valid one exists.
func (k *cacheFile) load(ctx context.Context) (from int64, err error) {
	began := time.Now()
	loaded, used := cache.Loaded{}, false
	if k.from != nil {
		if loaded, used, err = k.loadFile(ctx); err != nil {
			return 0, err
		}
	} else if err := k.beginEpoch(ctx); err != nil {
		return 0, err
	}
	if !used {
		if loaded.Revision, err = k.s.Cache.Load(ctx, k.s.cfg.Store); err != nil {
			return 0, err
		}
		for _, key := range k.s.Cache.Storages() {
			loaded.FromRows += k.s.Cache.Count(key)
		}
	}
	k.loaded.Store(&loaded)
	k.took.Store(int64(time.Since(began)))
	k.s.cfg.Log.Info("loaded all objects", "from the cache file", loaded.FromFile, "from the database", loaded.FromRows, "took", time.Since(began).Round(time.Millisecond))
	return loaded.Revision, nil
}

// beginEpoch begins a new epoch if the cache file is disabled: rows may have been edited since an earlier cache
// file, and a later start must not read that file.
func (k *cacheFile) beginEpoch(ctx context.Context) error {
	attestor := k.s.cfg.Store.Attestor()
	if attestor == nil {
		return nil
	}
	known, err := attestor.CacheFiles(ctx)
	if err == nil && known.Any() {
		err = attestor.NewEpoch(ctx)
	}
	if err != nil && ctx.Err() == nil {
		k.s.cfg.Log.Warn("cache files that were written before are still read by starts with --cache-file", "error", err)
		err = nil
	}
	return err
}

// loadFile loads from the cache file. It returns used as false, and logs the reason, if the file cannot be
// used.
func (k *cacheFile) loadFile(ctx context.Context) (loaded cache.Loaded, used bool, err error) {
	known, err := k.from.CacheFiles(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return loaded, false, err
		}
		k.s.cfg.Log.Warn("the cache file is neither read nor written: the database does not say which files it attests to", "error", err)
		return loaded, false, nil
	}
	k.epoch = known.Epoch
	if k.maker, err = maker(k.s.cfg.Catalogue.Release()); err != nil {
		k.s.cfg.Log.Warn("the cache file is neither read nor written: the build of this program cannot be identified", "error", err)
		k.epoch = ""
		return loaded, false, nil
	}
	if loaded, err = k.read(ctx, &known); err == nil {
		return loaded, true, nil
	}
	if ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) {
		k.s.cfg.Log.Warn("the cache file cannot be used, everything is read from the database", "file", k.cfg.Path, "error", err)
	}
	return cache.Loaded{}, false, nil
}

func (k *cacheFile) read(ctx context.Context, known *sqlstore.CacheFiles) (loaded cache.Loaded, err error) {
	f, err := file.Open(k.config(0), known)
	if err != nil {
		return loaded, err
	}
	defer f.Close()
	if k.cfg.Expect != nil {
		k.cfg.Expect(f.Memory())
	}
	loaded, err = k.s.Cache.LoadFile(ctx, k.s.cfg.Store, k.from, f)
	if err == nil {
		k.bytes.Store(f.Size())
		if info, err := os.Stat(k.cfg.Path); err == nil {
			k.at.Store(info.ModTime().Unix())
		}
		if loaded.FromRows*100 < (loaded.FromRows+loaded.FromFile)*fileStale {
			k.written, k.loads = loaded.Revision, k.s.Cache.Loads()
		}
	}
	return loaded, err
}

func (k *cacheFile) config(rate int64) *file.Config {
	return &file.Config{
		Path: k.cfg.Path, Maker: k.maker, Rate: rate,
		Leave: func(resource string) bool { return resource == "secrets" || k.s.cfg.Store.Encrypts(resource) },
		Attest: func(ctx context.Context, name string, key [32]byte) error {
			return k.from.Attest(ctx, k.epoch, name, key)
		},
	}
}

// run writes cache files periodically.
func (k *cacheFile) run(ctx context.Context) error {
	tick := time.NewTicker(fileLook)
	defer tick.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		k.logUnread()
		if age := time.Since(last); age >= fileEvery && k.due(fileChanged) || age >= fileSoon && (k.broken || k.due(fileMany)) {
			last = time.Now()
			k.write(ctx, fileRate)
		}
	}
}

// logUnread logs values that could not be read from the file since the last call. Those whose rows are
// readable are in memory now. A new file is due, and writing it reads all other values.
func (k *cacheFile) logUnread() {
	now := k.s.Cache.FailedReads()
	if now == k.unread {
		return
	}
	k.s.cfg.Log.Warn("values could not be read from the cache file: they are read from the database, and the file will be replaced; check the disk", "file", k.cfg.Path, "values", now-k.unread)
	k.unread, k.broken = now, k.epoch != "" && !k.stale
}

// stop writes a cache file at the end, after the last change, unless the previous file is recent enough.
func (k *cacheFile) stop() {
	if k.from == nil || !k.due(fileStale) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), fileAtStop)
	defer cancel()
	k.write(ctx, 0)
}

// due reports whether there are enough objects, and whether the last file lacks that percentage of them.
func (k *cacheFile) due(percent int) bool {
	if k.epoch == "" || k.stale {
		return false
	}
	total, changed := 0, 0
	for _, key := range k.s.Cache.Storages() {
		total += k.s.Cache.Count(key)
	}
	if total < k.cfg.Least {
		return false
	}
	if k.written == 0 {
		return true
	}
	if k.loads == k.s.Cache.Loads() && k.s.Cache.Revision()-k.written < int64(total*percent/100) {
		return false
	}
	leave := k.config(0).Leave
	for _, key := range k.s.Cache.Storages() {
		if cache.Internal(key) || leave(key) {
			continue
		}
		k.s.Cache.Snapshot(key).Ascend("", "", "", func(it *cache.Item) bool {
			if !it.InCacheFile() && it.Err() == nil {
				changed++
			}
			return true
		})
	}
	return changed*100 >= total*percent
}

func (k *cacheFile) write(ctx context.Context, rate int64) {
	began, revision, loads := time.Now(), k.s.Cache.Revision(), k.s.Cache.Loads()
	done, err := k.s.Cache.WriteFile(ctx, k.config(rate), k.from)
	switch {
	case err == nil:
		k.written, k.loads, k.broken, k.lastError = revision, loads, false, ""
		k.bytes.Store(done.Bytes)
		k.at.Store(time.Now().Unix())
		k.s.cfg.Log.Info("wrote the cache file", "objects", done.Objects, "bytes", done.Bytes, "took", time.Since(began).Round(time.Millisecond))
	case errors.Is(err, sqlstore.ErrEpochChanged):
		k.stale = true
		k.s.cfg.Log.Warn("no cache file will be written until this server restarts", "error", err)
	default:
		k.failures.Add(1)
		if lastError := err.Error(); lastError != k.lastError { // a full disk may be full for days
			k.lastError = lastError
			k.s.cfg.Log.Warn("the cache file was not written; values stay in memory and in the last file", "file", k.cfg.Path, "error", err)
		}
	}
}

// maker identifies this version of the program, running as this release: other versions, and other releases,
// read the same rows as other objects.
func maker(of release.Version) (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)) + " as " + of.String(), nil
}

var (
	startObjects    = prometheus.NewDesc("rowlock_start_objects", "Objects that the start read, by where from: cache_file, or database.", []string{"from"}, nil)
	startSeconds    = prometheus.NewDesc("rowlock_start_load_seconds", "How long the start took to load everything.", nil, nil)
	cacheFileBytes  = prometheus.NewDesc("rowlock_cache_file_bytes", "Size of the cache file that was read or written last.", nil, nil)
	cacheFileTime   = prometheus.NewDesc("rowlock_cache_file_timestamp_seconds", "When that was written, in seconds since 1970.", nil, nil)
	cacheFileFailed = prometheus.NewDesc("rowlock_cache_file_failures_total", "How often the cache file could not be written.", nil, nil)
	cacheFileUnread = prometheus.NewDesc("rowlock_cache_file_unread_values_total", "Reads of values from the cache file that failed, after each of which the row is read from the database.", nil, nil)
)

// Describe implements prometheus.Collector.
func (k *cacheFile) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{startObjects, startSeconds, cacheFileBytes, cacheFileTime, cacheFileFailed, cacheFileUnread} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (k *cacheFile) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if l := k.loaded.Load(); l != nil {
		gauge(startObjects, float64(l.FromFile), "cache_file")
		gauge(startObjects, float64(l.FromRows), "database")
		gauge(startSeconds, time.Duration(k.took.Load()).Seconds())
	}
	if at := k.at.Load(); at != 0 {
		gauge(cacheFileBytes, float64(k.bytes.Load()))
		gauge(cacheFileTime, float64(at))
	}
	ch <- prometheus.MustNewConstMetric(cacheFileFailed, prometheus.CounterValue, float64(k.failures.Load()))
	ch <- prometheus.MustNewConstMetric(cacheFileUnread, prometheus.CounterValue, float64(k.s.Cache.FailedReads()))
}
