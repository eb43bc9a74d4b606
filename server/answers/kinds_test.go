package answers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs/forms"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/sqlstore"
)

// now is the time of all answers.
var now = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// kind is a resource with some objects, and what they ought to look like.
type kind struct {
	name      string
	r         *kinds.Resource
	catalogue *kinds.Catalogue
	items     []*cache.Item
	served    func(t *testing.T, it *cache.Item) kinds.Object // an item in the served version
	stored    func(t *testing.T, it *cache.Item) kinds.Object // what columns are made from
}

func (k *kind) custom() bool { return !k.r.HasGoType() }

var own = jsoncodec.New(jsoncodec.Settings{})

func (k *kind) answers() *answers.Answers {
	return &answers.Answers{
		Items: objects.New(k.catalogue, nil, cache.New(k.catalogue)), Forms: forms.Forms{JSON: own, CBOR: true}, Clock: func() time.Time { return now },
	}
}

func (k *kind) request(query string) (*answers.Request, *httptest.ResponseRecorder) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/any?"+query, nil)
	scope := request.NewScope(w.Header(), now)
	scope.Info = &request.Info{Query: r.URL.Query()}
	return &answers.Request{W: w, R: r, Scope: scope, Resource: k.r}, w
}

// shown returns what an item is encoded from.
func (k *kind) shown(t *testing.T, as schema.GroupVersionKind, i int) any {
	obj := k.served(t, k.items[i])
	switch as.Kind {
	case metadata.Kind:
		return k.partial(t, k.items[i])
	case asTable.Kind:
		return k.table(t, metav1.ListMeta{ResourceVersion: obj.GetResourceVersion()}, k.items[i:i+1])
	}
	if k.custom() {
		return k.customJSON(t, k.items[i])
	}
	return obj
}

// customJSON returns a custom object as it is in lists and by itself.
func (k *kind) customJSON(t *testing.T, it *cache.Item) any {
	if objects.Clean(k.r, it) {
		return json.RawMessage(it.JSON())
	}
	return k.served(t, it).(*unstructured.Unstructured).Object
}

// partial returns the metadata of an item: of a built-in kind as it is stored.
func (k *kind) partial(t *testing.T, it *cache.Item) *metav1.PartialObjectMetadata {
	obj := k.served(t, it)
	if !k.custom() && !it.Older() {
		stored := k.stored(t, it)
		stored.SetResourceVersion(obj.GetResourceVersion())
		obj = stored
	}
	return partial(obj)
}

func partial(obj kinds.Object) *metav1.PartialObjectMetadata {
	data, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	p := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(data, p); err != nil {
		panic(err)
	}
	p.SetGroupVersionKind(metadata)
	return p
}

func (k *kind) table(t *testing.T, meta metav1.ListMeta, items []*cache.Item) *metav1.Table {
	out := &metav1.Table{ListMeta: meta, ColumnDefinitions: k.r.Columns.Definitions, Rows: []metav1.TableRow{}}
	out.SetGroupVersionKind(asTable)
	for _, it := range items {
		row := metav1.TableRow{Cells: k.r.Columns.Cells(k.stored(t, it), now)}
		if k.r.Columns.Conditions != nil {
			row.Conditions = k.r.Columns.Conditions(k.stored(t, it))
		}
		row.Object.Object = k.partial(t, it)
		out.Rows = append(out.Rows, row)
	}
	return out
}

// list returns what a page is encoded from.
func (k *kind) list(t *testing.T, as schema.GroupVersionKind, p *objects.Page) any {
	switch as.Kind {
	case metalist.Kind:
		out := &metav1.PartialObjectMetadataList{ListMeta: *p.Meta()}
		out.SetGroupVersionKind(metalist)
		for _, it := range p.Items {
			out.Items = append(out.Items, *k.partial(t, it))
		}
		return out
	case asTable.Kind:
		return k.table(t, *p.Meta(), p.Items)
	}
	if k.custom() {
		items := []any{}
		for _, it := range p.Items {
			items = append(items, k.customJSON(t, it))
		}
		meta := map[string]any{"continue": p.Continue, "resourceVersion": p.Meta().ResourceVersion}
		if p.Remaining >= 0 {
			meta["remainingItemCount"] = p.Remaining
		}
		return map[string]any{"apiVersion": k.r.APIVersion(), "kind": k.r.ListKind, "metadata": meta, "items": items}
	}
	return k.typedList(t, p)
}

// typedList makes a list of a built-in kind by its JSON.
func (k *kind) typedList(t *testing.T, p *objects.Page) runtime.Object {
	t.Helper()
	items := []any{}
	for _, it := range p.Items {
		obj := k.served(t, it)
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		items = append(items, obj)
	}
	data, err := json.Marshal(map[string]any{"kind": k.r.ListKind, "apiVersion": k.r.APIVersion(), "metadata": p.Meta(), "items": items})
	if err != nil {
		t.Fatal(err)
	}
	out, err := scheme.New(k.r.GVK().GroupVersion().WithKind(k.r.ListKind))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func decode(t *testing.T, it *cache.Item, obj kinds.Object) kinds.Object {
	t.Helper()
	if err := json.Unmarshal(it.JSON(), obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// allKinds returns a kind that is shown as it is stored, one that is converted, and custom
// resources of both sorts.
func allKinds(t *testing.T) []*kind {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	maps := &kind{name: "configmaps", r: catalogue.Lookup("", "v1", "configmaps"), catalogue: catalogue}
	maps.served = func(t *testing.T, it *cache.Item) kinds.Object { return decode(t, it, maps.r.New()) }
	maps.stored = maps.served
	maps.items = items(maps.r,
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"u1","creationTimestamp":"2026-05-04T03:00:00Z","labels":{"k":"v"}},"data":{"text":"\u003cé\u0001\u003e\n"}}`,
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","namespace":"ns","uid":"u2","creationTimestamp":"2025-05-04T03:00:00Z"}}`,
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"ns","uid":"u3","creationTimestamp":"2026-05-01T03:00:00Z","annotations":{"items":"[]"}},"binaryData":{"x":"AAEC"}}`)

	scalers := &kind{name: "autoscalers", r: catalogue.Lookup("autoscaling", "v1", "horizontalpodautoscalers"), catalogue: catalogue}
	scalers.stored = func(t *testing.T, it *cache.Item) kinds.Object {
		return decode(t, it, catalogue.ByStorage(scalers.r.Storage.Key).New())
	}
	scalers.served = func(t *testing.T, it *cache.Item) kinds.Object {
		out, err := scalers.r.FromStorage(scalers.stored(t, it))
		if err != nil {
			t.Fatal(err)
		}
		out.GetObjectKind().SetGroupVersionKind(scalers.r.GVK())
		return out
	}
	const target = `"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"},"minReplicas":1,"maxReplicas":3`
	scalers.items = items(scalers.r,
		`{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2","metadata":{"name":"a","namespace":"ns","uid":"u1","creationTimestamp":"2026-05-04T03:00:00Z"},"spec":{`+target+
			`,"metrics":[{"type":"Resource","resource":{"name":"memory","target":{"type":"Utilization","averageUtilization":50}}}]},"status":{"desiredReplicas":0,"currentMetrics":null}}`,
		`{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2","metadata":{"name":"b","namespace":"ns","uid":"u2","creationTimestamp":"2026-05-04T03:00:00Z"},"spec":{`+target+`},"status":{"desiredReplicas":2,"currentMetrics":null}}`)
	return []*kind{maps, scalers, things("clean", catalogue, upgraded{clean: true}), things("upgraded", catalogue, upgraded{})}
}

// things returns a kind of custom resources.
func things(name string, catalogue *kinds.Catalogue, s upgraded) *kind {
	gvk := schema.GroupVersionKind{Group: "a.example", Version: "v2", Kind: "Thing"}
	k := &kind{name: name, catalogue: catalogue, r: &kinds.Resource{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, ListKind: "ThingList", Plural: "things", Schema: s,
		New:     func() kinds.Object { return &unstructured.Unstructured{} },
		Storage: &kinds.Storage{Key: "things.a.example", GVK: gvk},
		Columns: kinds.Columns{
			Definitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}},
			Cells:       func(obj kinds.Object, _ time.Time) []any { return []any{obj.GetName()} },
		},
	}}
	version := "v1"
	if s.clean {
		version = "v2"
	}
	k.items = items(k.r,
		`{"apiVersion":"a.example/`+version+`","kind":"Thing","metadata":{"creationTimestamp":"2026-05-04T03:00:00Z","name":"a","namespace":"ns","uid":"u1"},"spec":{"n":1,"x":[1.5,null,"\u003c"]}}`,
		`{"apiVersion":"a.example/`+version+`","kind":"Thing","metadata":{"creationTimestamp":"2026-05-04T03:00:00Z","name":"b","namespace":"ns","uid":"u2"}}`)
	k.served = func(t *testing.T, it *cache.Item) kinds.Object {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(it.JSON()); err != nil {
			t.Fatal(err)
		}
		if !s.clean {
			u = upgrade(u)
		}
		return u
	}
	k.stored = k.served
	return k
}

// upgraded is a schema whose stored objects are of an older version, unless they are clean.
type upgraded struct {
	clean bool
	kinds.Schema
}

func (s upgraded) Clean(int64) bool { return s.clean }
func (upgraded) CallsWebhook() bool { return false }

func (upgraded) FromStore(ctx context.Context, objs ...kinds.Object) ([]kinds.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, obj := range objs {
		objs[i] = upgrade(obj.(*unstructured.Unstructured))
	}
	return objs, nil
}

func upgrade(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetAPIVersion("a.example/v2")
	u.SetLabels(map[string]string{"upgraded": "yes"})
	return u
}

func items(r *kinds.Resource, values ...string) (out []*cache.Item) {
	for i, value := range values {
		out = append(out, cache.NewOwnItem(&sqlstore.Row{
			Key: sqlstore.Key{Resource: r.Storage.Key, Namespace: "ns", Name: string(rune('a' + i))}, Revision: int64(101 + i), Value: []byte(value),
		}, r.Storage))
	}
	return out
}
