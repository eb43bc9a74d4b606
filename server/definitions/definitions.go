// Package definitions keeps a catalogue in step with the CustomResourceDefinitions that are stored.
//
// After Follow, the catalogue reflects every definition that the cache had when it was called; watches of a
// resource end when its definition is removed or changes how it is served, with the next Follow, which Run
// calls at most a tenth of a second later.
//
// Goroutines: Run is for the server to start.
package definitions

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/follow"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/custom"
	"github.com/rowlock/rowlock/server/release"
)

// Storage is the storage of definitions.
const Storage = "customresourcedefinitions.apiextensions.k8s.io"

const (
	// restAs is the pause of the loop after following definitions, as a multiple of the
	// duration.
	restAs = 10
	// maxRest bounds that, for readers of the catalogue that do not call Follow.
	maxRest = 100 * time.Millisecond
	// unreadRest is the pause of the loop after an unreadable definition.
	unreadRest = 5 * time.Second
)

// Follower keeps a catalogue in step.
type Follower struct {
	catalogue *kinds.Catalogue
	builtin   []*kinds.Resource
	converter func(*apiextensionsv1.CustomResourceDefinition) custom.Converter
	log       *slog.Logger
	cache     *cache.Cache
	follower  *follow.Follower
	kept      *custom.SchemaCache
	live      atomic.Bool // the initial definitions are known
	reader    *Reader
	release   release.Version

	stale    atomic.Bool // known has changed since the catalogue was set
	swapping atomic.Bool // the catalogue is being set, to something that is not stale

	mu    sync.Mutex // held while the catalogue is set
	known map[string]*served
	set   map[string]*served // from which the catalogue was made
}

// served is one definition that is established.
type served struct {
	crd     *apiextensionsv1.CustomResourceDefinition // without schemas
	digests Digests
	item    atomic.Pointer[cache.Item] // its text has the schemas; referenced here even if the cache packs it
	since   int64
	*custom.Definition
}

// schema reads a version from the text.
func (s *served) schema(name string) (*apiextensionsv1.CustomResourceDefinitionVersion, int, error) {
	return readVersion(s.item.Load().Peek(), name)
}

// text finds the schema of a version in the text.
func (s *served) text(name string) []byte { return schemaText(s.item.Load().Peek(), name) }

// New makes a follower of the definitions in c. The catalogue holds the built-in resources. converter makes
// the converter for the objects of a definition, nil if its versions differ only in their names.
func New(catalogue *kinds.Catalogue, c *cache.Cache, converter func(*apiextensionsv1.CustomResourceDefinition) custom.Converter, log *slog.Logger) *Follower {
	f := &Follower{
		catalogue: catalogue, builtin: catalogue.Known(), converter: converter, log: log, cache: c,
		known: map[string]*served{}, set: map[string]*served{}, kept: custom.NewSchemaCache(), reader: &Reader{},
	}
	if len(f.builtin) > 0 {
		f.release = f.builtin[0].Release
	}
	f.follower = follow.New(c, f.reset, follow.Kind{Storage: Storage, Set: f.take, Delete: func(_, name string) { f.forget(name) }})
	return f
}

// Reader returns the reader of the followed definitions, for other followers. It is nil for a nil Follower.
func (f *Follower) Reader() *Reader {
	if f == nil {
		return nil
	}
	return f.reader
}

// Follow brings the catalogue up to date with the cache. A nil Follower follows nothing.
func (f *Follower) Follow() {
	if f == nil {
		return
	}
	f.follower.CatchUp()
	// Concurrent callers wait: the catalogue does not have the changes before.
	if !f.stale.Load() && !f.swapping.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stale.Load() {
		f.swapping.Store(true) // before it is not stale any more, so that a reader finds either
		defer f.swapping.Store(false)
		// Later changes are applied under another lock, and make it stale again.
		f.follower.RLock()
		now := maps.Clone(f.known)
		f.stale.Store(false)
		f.follower.RUnlock()
		f.swap(now)
	}
}

// Run follows definitions, and drops idle compiled schemas, until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	var sweeper sync.WaitGroup
	defer sweeper.Wait()
	sweeper.Go(func() { f.kept.Run(ctx) })
	for ctx.Err() == nil {
		f.run(ctx)
	}
	return nil
}

func (f *Follower) run(ctx context.Context) {
	w, _ := f.cache.WatchNow(Storage, cache.Scope{})
	defer w.Stop()
	var batch []cache.Delivery
	for {
		began := time.Now()
		if err := cache.Try(f.Follow); err != nil {
			f.log.Error("definitions are not followed as long as one cannot be read", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(unreadRest):
			}
			return
		}
		f.live.Store(true)
		// Setting a catalogue of thousands takes some milliseconds, so definitions that come one after the
		// other are set together. A request for a custom resource follows them by itself. Watches that are to
		// end wait for that, or for the end of this rest.
		rest := time.NewTimer(min(restAs*time.Since(began), maxRest))
		select {
		case <-ctx.Done():
			rest.Stop()
			return
		case <-rest.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-w.Ready():
		}
		var err error
		if batch, _, err = w.Take(ctx, batch); err != nil {
			return
		}
	}
}

// swap sets the catalogue. Watches of a storage whose resources are other ones end.
func (f *Follower) swap(now map[string]*served) {
	all := slices.Clone(f.builtin)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		all = append(all, now[name].Resources...)
	}
	before := f.set
	f.set = now
	f.catalogue.Set(all)
	for name, old := range before {
		if now[name] != old {
			f.cache.End(old.Resources[0].Storage.Key)
		}
	}
}

func (f *Follower) reset() {
	// Known definitions stay: those that come again unchanged keep their resources, and with them the watches
	// of these.
	for name := range f.known {
		if f.cache.Get(Storage, "", name) == nil {
			delete(f.known, name)
		}
	}
	f.stale.Store(true)
}

func (f *Follower) forget(name string) {
	if f.known[name] != nil {
		delete(f.known, name)
		f.stale.Store(true)
	}
}

// take takes a definition that is new or has changed.
func (f *Follower) take(item *cache.Item) {
	crd, digests, err := f.reader.Read(f.cache.JSON(), item)
	if err != nil || !custom.Established(crd) {
		if err != nil {
			f.log.Error("a definition cannot be read", "name", item.Name, "error", err)
		}
		f.forget(item.Name)
		return
	}
	if f.catalogue.Own(crd.Spec.Group, crd.Status.AcceptedNames.Plural) {
		f.log.Error("a definition has the name of a built-in resource, and is not served", "name", item.Name)
		f.forget(item.Name)
		return
	}
	old := f.known[item.Name]
	if old != nil && same(old.crd, crd) && maps.Equal(old.digests, digests) {
		old.item.Store(item) // the old one may go
		return
	}
	since := item.Revision
	if old != nil && old.crd.UID == crd.UID && storedAlike(old, crd, digests) {
		since = old.since
	}
	var converter custom.Converter
	if f.converter != nil {
		converter = f.converter(crd)
	}
	now := &served{crd: crd, digests: digests, since: since}
	now.item.Store(item)
	now.Definition, err = custom.From(crd, since, converter, custom.Source{Read: now.schema, Text: now.text, Digests: digests, Kept: f.kept, Release: f.release})
	if err != nil {
		f.log.Error("a definition cannot be served", "name", item.Name, "error", err)
		f.forget(item.Name)
		return
	}
	f.known[item.Name] = now
	f.stale.Store(true)
	if f.live.Load() && item.Size() >= largeDefinition {
		f.kept.Precompile(now.Served()...)
	}
}

// largeDefinition is from how many bytes on the schemas of a definition are compiled before a request needs them.
const largeDefinition = 16 << 10

// storedAlike reports whether objects are stored in the same form in two states of a definition, so that
// objects stored in one need no check in the other.
func storedAlike(old *served, crd *apiextensionsv1.CustomResourceDefinition, now Digests) bool {
	x, y := custom.Stored(old.crd), custom.Stored(crd)
	return x != nil && y != nil && x.Name == y.Name && old.crd.Spec.PreserveUnknownFields == crd.Spec.PreserveUnknownFields &&
		old.crd.Status.AcceptedNames.Kind == crd.Status.AcceptedNames.Kind && old.digests[x.Name] == now[y.Name]
}

// same reports whether two states of a definition are served in the same way, but for schemas.
func same(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return a.UID == b.UID && a.Generation == b.Generation && custom.Ending(a) == custom.Ending(b) &&
		equality.Semantic.DeepEqual(a.Status.AcceptedNames, b.Status.AcceptedNames) && equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// Version returns the entry of a version of a custom kind, or nil.
func (f *Follower) Version(gvk schema.GroupVersionKind) *custom.Version {
	r := f.catalogue.LookupKind(gvk)
	if r == nil {
		return nil
	}
	v, _ := r.Schema.(*custom.Version)
	return v
}

// Merging returns the merge types of a custom kind, or nil.
func (f *Follower) Merging(gvk schema.GroupVersionKind) managedfields.TypeConverter {
	if v := f.Version(gvk); v != nil {
		merging, err := v.Merging()
		if err == nil {
			return merging
		}
		f.log.Error("objects of a custom kind are merged without their schema", "kind", gvk.String(), "error", err)
	}
	return nil
}

// Digest returns a digest of the schema of a custom resource; "" for other resources.
func Digest(r *kinds.Resource) string {
	if v, ok := r.Schema.(*custom.Version); ok {
		return v.Digest()
	}
	return ""
}

// OpenAPI describes the objects of a custom resource, or is nil.
func (f *Follower) OpenAPI(r *kinds.Resource) json.RawMessage {
	v, ok := r.Schema.(*custom.Version)
	if !ok {
		return nil
	}
	text, err := v.OpenAPI()
	if err != nil {
		f.log.Error("a custom kind cannot be described", "kind", r.GVK().String(), "error", err)
		return nil
	}
	return text
}

// Text returns the schema of a custom resource as it is stored, or nil.
func (f *Follower) Text(r *kinds.Resource) []byte {
	if v, ok := r.Schema.(*custom.Version); ok {
		return v.Text()
	}
	return nil
}
