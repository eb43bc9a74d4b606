//go:build unix

package cluster

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"github.com/rowlock/rowlock/sqlstore"
)

// The layout of a cache file: the magic and the name, sealed blocks, the last of which is the directory, and the place and the length of the
// directory.
const (
	cacheMagic = "rowlock blocks 1\n"
	cacheHead  = len(cacheMagic) + 32
	cacheTail  = 16
	cacheSeal  = 16 // bytes that each block has more than its text
)

// CachedResources returns the resources with objects in the cache file of a server; none if the database attests to no such file.
func (c *Cluster) CachedResources(ctx context.Context, i int) ([]string, error) {
	column := "value"
	if c.Postgres() != nil {
		column = "word"
	}
	words, err := c.texts(ctx, fmt.Sprintf(`SELECT %s FROM kv_meta WHERE key = 'cache_files'`, column))
	if err != nil || len(words) == 0 {
		return nil, err
	}
	known, ok := sqlstore.ParseCacheFiles(words[0])
	if !ok {
		return nil, fmt.Errorf("the keys of cache files are %.40q", words[0])
	}
	data, err := os.ReadFile(c.CacheFile(i))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return cachedResources(data, known.Key)
}

var errNoCacheFile = errors.New("it is no cache file")

// cachedResources returns the resources with objects in a cache file; none if there is no key of its name.
func cachedResources(data []byte, keyOf func(name string) ([32]byte, bool)) (names []string, err error) {
	if len(data) < cacheHead+cacheTail || !bytes.HasPrefix(data, []byte(cacheMagic)) {
		return nil, errNoCacheFile
	}
	key, ok := keyOf(string(data[len(cacheMagic):cacheHead]))
	if !ok {
		return nil, nil
	}
	tail := data[len(data)-cacheTail:]
	at, size := binary.BigEndian.Uint64(tail), binary.BigEndian.Uint64(tail[8:])
	end := uint64(len(data) - cacheTail)
	if at > end || size+cacheSeal != end-at {
		return nil, errNoCacheFile
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	sealer, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	text, err := sealer.Open(nil, cacheNonce(), data[at:end], data[:cacheHead])
	if err != nil {
		return nil, fmt.Errorf("the directory of a cache file: %w", err)
	}
	return directoryResources(text)
}

// cacheNonce is that of a directory.
func cacheNonce() []byte { return binary.BigEndian.AppendUint64(make([]byte, 4, 12), math.MaxUint64) }

// directoryResources returns the resources of a directory, which has the number of blocks, the size of each, and a JSON object.
func directoryResources(text []byte) (names []string, err error) {
	r := bytes.NewReader(text)
	count, err := binary.ReadUvarint(r)
	for ; count > 0 && err == nil; count-- {
		_, err = binary.ReadUvarint(r)
	}
	if err != nil {
		return nil, errNoCacheFile
	}
	var directory struct {
		Resources []struct{ Name string }
		Blocks    []struct{ Resource, Objects int }
	}
	if err := json.NewDecoder(r).Decode(&directory); err != nil {
		return nil, fmt.Errorf("the directory of a cache file: %w", err)
	}
	objects := make([]int, len(directory.Resources))
	for _, b := range directory.Blocks {
		if b.Resource < 0 || b.Resource >= len(objects) {
			return nil, errNoCacheFile
		}
		objects[b.Resource] += b.Objects
	}
	for i, r := range directory.Resources {
		if objects[i] > 0 {
			names = append(names, r.Name)
		}
	}
	return names, nil
}
