package garbage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"

	"github.com/rowlock/rowlock/server/aggregator/documents"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

// memory is a follower of a cache and a looker for its objects.
type memory struct {
	*follower
	processor *processor
	last      int64
	rows      map[string]sqlstore.Row
}

func newMemory(with func(*Collector)) *memory {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	c := &Collector{Base: reconcile.Base{Cache: cache.New(catalogue), Clock: time.Now}, Catalogue: catalogue}
	if with != nil {
		with(c)
	}
	s := newState(c)
	known := &progress{signal: s.notifier.signal}
	return &memory{
		follower:  &follower{state: s, progress: known, byStorage: map[string]*source{}},
		processor: &processor{state: s, progress: known, remote: newRemoteOwners(s), misplaced: newMisplaced(s)}, rows: map[string]sqlstore.Row{},
	}
}

// config writes a ConfigMap; with "" it is unreadable.
func (m *memory) config(name, metadata string) {
	m.last++
	row := sqlstore.Row{Key: sqlstore.Key{Resource: "configmaps", Namespace: "n", Name: name}, Revision: m.last, Created: m.last}
	if metadata == "" {
		row.Unopened = errors.New("its key is away")
	} else {
		row.Value = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"n",%s}}`, name, metadata)
	}
	old := m.rows[name]
	m.rows[name] = row
	m.Cache.Apply([]sqlstore.Change{{Row: row, PrevRevision: old.Revision, PrevValue: old.Value}})
}

// An unreadable owner exists, also when all objects are read again.
func TestOwnersThatCannotBeRead(t *testing.T) {
	m, ctx := newMemory(nil), t.Context()
	m.config("owner", `"uid":"1"`)
	m.config("dependent", `"uid":"2","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"1"}]`)
	m.follow(ctx)
	item := m.Cache.Get("configmaps", "n", "dependent")
	_, refs := item.Written()
	if o, err := m.resolveOwner(item, &refs[0]); o != solid || err != nil {
		t.Fatal(o, err)
	}
	m.config("owner", "")
	for _, what := range []string{"as it is heard of", "as all is read again"} {
		m.feed(ctx, m.notifier.take())
		n, known := m.graph.Find(graph.IDOf("1"))
		if !known || n.Absent {
			t.Errorf("%s: %+v", what, n)
		}
		if o, err := m.resolveOwner(item, &refs[0]); o != solid || !errors.Is(err, errUnknown) {
			t.Errorf("%s: %v, %v", what, o, err)
		}
		m.Cache.End("configmaps")
	}
}

// others is another server that has toys; a silent one does not report their kind.
type others struct{ silent bool }

func (others) Resources() ([]documents.Resource, []schema.GroupVersion) { return nil, nil }

func (others) Serves(gv schema.GroupVersion) bool {
	return gv.Group == "toys.example.com" || gv.String() == "v1"
}

func (o others) OfKind(gvk schema.GroupVersionKind) (what schema.GroupVersionResource, namespaced, ok bool) {
	return gvk.GroupVersion().WithResource("toys"), true, !o.silent
}

// Call has none.
func (others) Call(_ context.Context, _, _, path, _ string, _, _ any) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "toys"}, path[strings.LastIndex(path, "/")+1:])
}

// Cached answers of other servers do not keep the text of the dependent in memory, and owners with too long a name are
// not requested.
func TestWhatIsRememberedOfOthers(t *testing.T) {
	m, ctx := newMemory(func(c *Collector) { c.Remote, c.API = others{}, others{} }), t.Context()
	text := strings.Clone("toys.example.com/v1")
	s := &subject{item: &cache.Item{Namespace: "n"}, metadata: metadata{refs: []cache.Owner{
		{APIVersion: text, Kind: "Toy", Name: text[:4], UID: text[:3]},
		{APIVersion: text, Kind: "Toy", Name: strings.Repeat("x", longestQuery), UID: "x"},
	}}}
	if v := m.processor.resolveOwners(ctx, s); v.count[dangling] != 1 || !errors.Is(v.refused, errUnknown) {
		t.Errorf("%+v", v)
	}
	remembered := 0
	if err := m.processor.remote.answers.SetEvictionFunc(func(key lru.Key, _ any) {
		remembered++
		q := key.(query)
		for _, part := range []string{q.name, q.uid, q.what.Group} {
			if at := uintptr(unsafe.Pointer(unsafe.StringData(part))) - uintptr(unsafe.Pointer(unsafe.StringData(text))); at < uintptr(len(text)) {
				t.Errorf("%q is part of the text of the object", part)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if m.processor.remote.answers.Clear(); remembered != 1 {
		t.Errorf("%d are remembered", remembered)
	}
}

// Owners at another server are not looked up here, even if there is such a kind, and that
// server may be unavailable.
func TestOwnerInfodsThatAreHereToo(t *testing.T) {
	m := newMemory(func(c *Collector) { c.Remote = others{silent: true} })
	m.config("dependent", `"uid":"2","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"1"}]`)
	m.follow(t.Context())
	item := m.Cache.Get("configmaps", "n", "dependent")
	s := &subject{item: item, metadata: read(item)}
	if v := m.processor.resolveOwners(t.Context(), s); !errors.Is(v.refused, errUnknown) {
		t.Errorf("%+v", v)
	}
}
