package custom

import (
	"context"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/rowlock/rowlock/server/schema/structural"
)

const (
	// maxCompiledText bounds the schemas that are kept compiled at a time, in bytes of their text, where rules count
	// for more; a compiled one takes some thirty times as much. The most recently used one is always kept.
	maxCompiledText = 8 << 20
	// compiledIdle is the time for which an unused compiled schema stays in memory.
	compiledIdle = 45 * time.Second
)

// SchemaCache holds the versions whose schemas are compiled: their validators, merge types, and rules. A schema is
// compiled when it is first used, and dropped when it was not used for a while, or when others need its
// place; users in progress keep it to their end. A SchemaCache may be shared by goroutines.
type SchemaCache struct {
	limit int // of bytes of text
	idle  time.Duration
	now   func() time.Time
	begun chan struct{} // there is something to look after again

	mu    sync.Mutex
	all   map[*Version]int // bytes of text
	bytes int

	compileQueue
}

// NewSchemaCache makes an empty one. Run maintains it.
func NewSchemaCache() *SchemaCache {
	return &SchemaCache{
		limit: maxCompiledText, idle: compiledIdle, now: time.Now, begun: make(chan struct{}, 1), all: map[*Version]int{},
		compileQueue: compileQueue{pending: map[*Version]*compileRequest{}, busy: map[string]bool{}, wake: make(chan struct{}, compilersAtOnce), came: make(chan struct{}, 1)},
	}
}

// Run compiles requested schemas, and drops idle ones, until ctx ends. While nothing is compiled it has no timer.
func (k *SchemaCache) Run(ctx context.Context) {
	var compilers sync.WaitGroup
	defer compilers.Wait()
	k.open()
	defer k.close()
	for range compilersAtOnce {
		compilers.Go(func() { k.compileAll(ctx) })
	}
	compilers.Go(func() { k.precompile(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.begun:
		}
		for timer := time.NewTicker(k.idle / 3); ; {
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			if k.sweep() == 0 {
				timer.Stop()
				break
			}
		}
	}
}

// sweep drops schemas that were not used for a while, and returns how many remain.
func (k *SchemaCache) sweep() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.now().Add(-k.idle).UnixNano()
	for v := range k.all {
		if v.used.Load() <= before {
			k.drop(v)
		}
	}
	return len(k.all)
}

// add takes a version whose schema was compiled just now.
func (k *SchemaCache) add(v *Version, size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bytes += size - k.all[v]
	k.all[v] = size
	for k.bytes > k.limit && len(k.all) > 1 {
		var last *Version
		for other := range k.all {
			if other != v && (last == nil || other.used.Load() < last.used.Load()) {
				last = other
			}
		}
		k.drop(last)
	}
	select {
	case k.begun <- struct{}{}:
	default: // it is known
	}
}

// drop drops the compiled schema of a version. The caller holds mu.
func (k *SchemaCache) drop(v *Version) {
	k.bytes -= k.all[v]
	delete(k.all, v)
	v.made.Store(nil)
}

// made is the compiled schema of a version.
type made struct {
	schema  *structural.Schema
	merging func() (managedfields.TypeConverter, error) // made once
	whole   atomic.Bool                                 // all of it is compiled, and not only the requested parts
}

// compiled holds the compiled schema of a version.
type compiled struct {
	read   func() (v *apiextensionsv1.CustomResourceDefinitionVersion, size int, err error)
	text   func() []byte // nil: there is none
	digest Digest
	kept   *SchemaCache // nil: compiled forms stay in memory

	mu   sync.Mutex // held while it is compiled
	made atomic.Pointer[made]
	used atomic.Int64 // when it was last used, in nanoseconds of the clock
}

// use returns the compiled schema of the version, which the caller may keep.
func (v *Version) use() *made {
	m := v.made.Load()
	if m == nil {
		m = v.compile()
	}
	if v.kept != nil {
		v.used.Store(v.kept.now().UnixNano())
	}
	return m
}

func (v *Version) compile() *made {
	v.mu.Lock()
	defer v.mu.Unlock()
	if m := v.made.Load(); m != nil {
		return m
	}
	text, size, err := v.read()
	var s *structural.Schema
	if err == nil {
		s, err = structural.New(text, v.of.spec.PreserveUnknownFields, v.of.release)
	}
	if err != nil {
		s = structural.Broken(err)
	}
	m := &made{schema: s, merging: sync.OnceValues(func() (managedfields.TypeConverter, error) { return s.TypeConverter(v.gvk) })}
	v.made.Store(m)
	if v.kept != nil {
		v.used.Store(v.kept.now().UnixNano())
		v.kept.add(v, size)
	}
	return m
}

// Schema validates objects of the version. One that cannot be parsed refuses them all.
func (v *Version) Schema() *structural.Schema { return v.use().schema }

// Merging gives the merge types of the version.
func (v *Version) Merging() (managedfields.TypeConverter, error) { return v.use().merging() }

// OpenAPI describes objects of the version, as JSON. It caches nothing.
func (v *Version) OpenAPI() ([]byte, error) {
	text, _, err := v.read()
	if err != nil {
		return nil, err
	}
	return structural.OpenAPI(text, v.of.spec.PreserveUnknownFields, v.of.release)
}

// Text returns the version's schema as it is written; nil if that does not apply, or is unknown.
func (v *Version) Text() []byte {
	if v.text == nil || v.of.spec.PreserveUnknownFields {
		return nil
	}
	return v.text()
}

// Digest identifies the texts of schemas.
type Digest = [32]byte

// Digest identifies the schema of the version's objects, by its text.
func (v *Version) Digest() string { return hex.EncodeToString(v.digest[:]) }
