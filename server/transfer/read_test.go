package transfer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/transfer"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/foreign"
)

var now = time.Date(2026, 11, 23, 14, 5, 0, 0, time.UTC)

func reader() *transfer.Reader {
	return transfer.NewReader(transfer.Options{Events: true, Now: now})
}

func take(t *testing.T, r *transfer.Reader, e foreign.Entry) transfer.Outcome {
	t.Helper()
	out, err := r.Read(t.Context(), e)
	if err != nil {
		t.Fatalf("%s: %v", e.Key, err)
	}
	return out
}

// TestEveryKind: an object of each built-in kind, with values in all its fields, is the same after the way
// there and back: as Protobuf and as JSON, in each of its versions.
func TestEveryKind(t *testing.T) {
	catalogue, looked := kinds.NewCatalogue(builtin.Resources()), 0
	for _, r := range catalogue.Known() {
		if r.Storage == nil {
			continue
		}
		looked++
		t.Run(r.GVR().String(), func(t *testing.T) {
			for seed := range int64(8) {
				sameThereAndBack(t, catalogue, r, seed)
			}
		})
	}
	if looked < 55 {
		t.Errorf("only %d kinds were looked at", looked)
	}
}

func sameThereAndBack(t *testing.T, catalogue *kinds.Catalogue, r *kinds.Resource, seed int64) {
	t.Helper()
	home := catalogue.ByStorage(r.Storage.Key)
	obj := sampled(r, seed)
	for _, codec := range forms {
		value, err := codec.Encode(nil, obj)
		if err != nil {
			t.Fatal(err)
		}
		e := foreign.Entry{Key: keyOf(home, obj), Value: slices.Clone(value), CreateRevision: 3, ModRevision: 9}
		rd := reader()
		out := take(t, rd, e)
		if out.Disposition != transfer.Taken {
			t.Fatalf("seed %d: %+v", seed, out)
		}
		want := sqlstore.Key{Resource: r.Storage.Key, Namespace: obj.GetNamespace(), Name: "x"}
		if out.Row.Key != want || out.Row.Revision != 9 || out.Row.Created != 3 {
			t.Fatalf("row %+v", out.Row)
		}
		same(t, r, obj, out.Row.Value)
		back, ok, err := transfer.NewWriter("").Entry(out.Row)
		if err != nil || !ok || back.Key != e.Key || back.ModRevision != 9 || back.CreateRevision != 3 {
			t.Fatalf("back: %+v, %v", back, err)
		}
		again := take(t, rd, back)
		if diff := cmp.Diff(tree(t, out.Row.Value), tree(t, again.Row.Value)); again.Disposition != transfer.Taken || diff != "" {
			t.Fatalf("there and back: %v %s", again.Err, diff)
		}
	}
}

// forms are the forms in which a stock server stores objects.
var forms = []interface {
	Encode(dst []byte, obj runtime.Object) ([]byte, error)
}{protobuf.Codec{}, jsoncodec.New(jsoncodec.Settings{})}

// sampled returns an object of a kind as it is stored, with something in all its fields.
func sampled(r *kinds.Resource, seed int64) kinds.Object {
	obj := r.New()
	sample.Fill(rand.New(rand.NewSource(seed)), obj)
	release.Default.View().Clear(obj)
	obj.SetName("x")
	obj.SetNamespace("")
	if r.Namespaced {
		obj.SetNamespace("a")
	}
	obj.SetSelfLink("")
	obj.SetResourceVersion("")
	obj.SetUID(types.UID(fmt.Sprint("uid-", seed)))
	obj.SetGeneration(41 + seed)
	obj.SetCreationTimestamp(metav1.NewTime(time.Unix(1_700_000_000, 0)))
	obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	return obj
}

// keyOf returns where a stock server keeps an object.
func keyOf(home *kinds.Resource, obj kinds.Object) string {
	return "/registry/" + strings.TrimPrefix(home.RegistryKey(obj.GetNamespace(), obj.GetName()), "/registry/")
}

// same compares a stored object, in the version of r, with the original, field by field.
func same(t *testing.T, r *kinds.Resource, obj kinds.Object, stored []byte) {
	t.Helper()
	got := r.NewStored()
	if err := json.Unmarshal(stored, got); err != nil {
		t.Fatal(err)
	}
	want := obj.DeepCopyObject().(kinds.Object)
	var err error
	if r.ToStorage != nil {
		if want, err = r.ToStorage(want); err != nil {
			t.Fatal(err)
		}
	}
	if d := r.Storage.Default; d != nil {
		d(want)
	}
	want.GetObjectKind().SetGroupVersionKind(r.Storage.GVK)
	if !equality.Semantic.DeepEqual(normal(t, want), normal(t, got)) {
		t.Fatalf("differs: %s", cmp.Diff(normal(t, want), normal(t, got)))
	}
}

// normal returns the tree of an object, without empty values: neither Protobuf nor a stock server's store distinguishes
// empty from absent.
func normal(t *testing.T, obj kinds.Object) any {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return tree(t, data)
}

func tree(t *testing.T, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return prune(v)
}

func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e = prune(e); e == nil || k == "request" && e == "" {
				delete(v, k) // the request of a certificate has no bytes, in whichever way
			} else {
				v[k] = e
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	}
	return v
}

func encode(t *testing.T, obj runtime.Object, apiVersion, kind string) []byte {
	t.Helper()
	obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	value, err := protobuf.Codec{}.Encode(nil, obj)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u"}
}

// TestFates: which entries are transferred, which are left out for which reason, and which are damaged.
func TestFates(t *testing.T) {
	cm := encode(t, &corev1.ConfigMap{ObjectMeta: meta("a", "x")}, "v1", "ConfigMap")
	svc := encode(t, &corev1.Service{ObjectMeta: meta("a", "x")}, "v1", "Service")
	lease := []byte(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"apiserver-1","namespace":"kube-system","labels":{"apiserver.kubernetes.io/identity":"kube-apiserver"}}}`)
	for _, c := range []struct {
		key      string
		value    []byte
		fate     transfer.Disposition
		contains string
	}{
		{"/registry/configmaps/a/x", cm, transfer.Taken, ""},
		{"/registry/configmaps/a/y", cm, transfer.Damaged, `it calls itself "x"`},
		{"/registry/configmaps/b/x", cm, transfer.Damaged, `in namespace "a"`},
		{"/registry/configmaps/a/x", svc, transfer.Damaged, `a "Service" of "v1", in the place of a ConfigMap`},
		{"/registry/secrets/a/x", []byte("k8s:enc:aescbc:v1:key1:...."), transfer.Damaged, "it is encrypted (aescbc), and --encryption-provider-config is not given"},
		{"/registry/secrets/a/x", []byte("k8s:enc:\xff\xff:"), transfer.Damaged, "by a provider that is not known"},
		{"/registry/configmaps/a/x", cm[:len(cm)-5], transfer.Damaged, "unexpected EOF"},
		{"/registry/configmaps/a/x", nil, transfer.Damaged, "neither Protobuf nor JSON"},
		{"/registry/configmaps/a/x", []byte("k8s\x00"), transfer.Damaged, "empty body"},
		{"/registry/configmaps/a/x", []byte(`{"kind":"ConfigMap"`), transfer.Damaged, ""},
		{"/registry/e.io/ws/a/x", []byte(`{"kind":"W","apiVersion":"e.io/v1","metadata":{"name":"x","namespace":"a"},"spec":1}` + "\n"), transfer.Taken, ""},
		{"/registry/e.io/ws/a/x", []byte(`{"kind":"W","apiVersion":"f.io/v1","metadata":{"name":"x","namespace":"a"}}`), transfer.Damaged, `not of the group "e.io"`},
		{"/registry/e.io/ws/a/x", cm, transfer.Left, "other API servers"},
		{"/registry/rbac.authorization.k8s.io/clusterroles/x", []byte(`{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"x"}}`), transfer.Left, "not served here"},
		{"/registry/configmaps/a", cm, transfer.Left, "not served here"},
		{"/registry/configmaps/a/x/y", cm, transfer.Left, "not served here"},
		{"/registry/configmaps//x", cm, transfer.Left, "not served here"},
		{"/registry/podsecuritypolicy/x", cm, transfer.Left, "not served here"},
		{"/registry/", cm, transfer.Left, "not served here"},
		{"/registryconfigmaps/a/x", cm, transfer.Left, "outside the prefix"},
		{"\x00\xff", cm, transfer.Left, "outside the prefix"},
		{"/bootstrap/abc", cm, transfer.Left, "k3s keeps for itself"},
		{"k3s/etcd/addresses", cm, transfer.Left, "k3s keeps for itself"},
		{"k3s.io/configmaps/a/x", cm, transfer.Left, "outside the prefix"},
		{"compact_rev_key", nil, transfer.Left, "marks of the old store"},
		{"/registry/health", nil, transfer.Left, "marks of the old store"},
		{"/registry/ranges/serviceips", cm, transfer.Left, "ranges"},
		{"/registry/ranges/servicenodeports", cm, transfer.Left, "ranges"},
		{"/registry/masterleases/10.0.0.1", cm, transfer.Left, "leases of the old"},
		{"/registry/leases/kube-system/apiserver-1", lease, transfer.Left, "leases of the old"},
		{"/registry/services/endpoints/default/kubernetes", cm, transfer.Left, "endpoints of the old"},
		{"/registry/endpointslices/default/kubernetes", cm, transfer.Left, "endpoints of the old"},
	} {
		out := take(t, reader(), foreign.Entry{Key: c.key, Value: c.value, ModRevision: 1})
		reason := out.Why
		if out.Err != nil {
			reason = out.Err.Error()
		}
		if out.Disposition != c.fate || !strings.Contains(reason, c.contains) {
			t.Errorf("%q: fate %d, %q, want %d, %q", c.key, out.Disposition, reason, c.fate, c.contains)
		}
	}
	if out := take(t, transfer.NewReader(transfer.Options{}), foreign.Entry{Key: "/registry/events/a/x", ModRevision: 1}); out.Disposition != transfer.Left || !strings.Contains(out.Why, "--events") {
		t.Errorf("an event: %+v", out)
	}
}

// TestClaims: allocations of services become rows of their own.
func TestClaims(t *testing.T) {
	s := &corev1.Service{ObjectMeta: meta("a", "x")}
	s.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.43.0.7", ClusterIPs: []string{"10.43.0.7", "fd00::7"}, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
		HealthCheckNodePort: 30100, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30001}, {Port: 81, NodePort: 30001, Protocol: corev1.ProtocolUDP}, {Port: 82}},
	}
	r := reader()
	out := take(t, r, foreign.Entry{Key: "/registry/services/specs/a/x", Value: encode(t, s, "v1", "Service"), ModRevision: 1})
	var held []string
	for _, c := range out.Claims {
		held = append(held, c.Key.String()+string(c.Value))
	}
	slices.Sort(held)
	const owner = `{"owner":"a/x"}`
	want := []string{"~serviceips/10.43.0.7" + owner, "~serviceips/fd00::7" + owner, "~serviceports/30001" + owner, "~serviceports/30100" + owner}
	if !slices.Equal(held, want) || r.Report().Claims != 4 {
		t.Errorf("%q, %v", held, out.Err)
	}
}

type failing struct{ err error }

func (f failing) Open(context.Context, string, []byte) ([]byte, error) { return nil, f.err }

// TestSilentKMS: a key management service that does not answer ends the work; a key that
// does not open a value is a matter of that value.
func TestSilentKMS(t *testing.T) {
	sealed := foreign.Entry{Key: "/registry/secrets/a/x", Value: []byte("k8s:enc:kms:v2:p:..."), ModRevision: 1}
	r := transfer.NewReader(transfer.Options{Opener: failing{fmt.Errorf("%w: hung", sqlstore.ErrKeyUnavailable)}})
	if _, err := r.Read(t.Context(), sealed); !errors.Is(err, sqlstore.ErrKeyUnavailable) || !strings.Contains(err.Error(), sealed.Key) {
		t.Errorf("%v", err)
	}
	r = transfer.NewReader(transfer.Options{Opener: failing{errors.New("broken")}})
	if out := take(t, r, sealed); out.Disposition != transfer.Damaged {
		t.Errorf("%+v", out)
	}
}

// TestReport counts by name, and lists custom resources next to their definitions.
func TestReport(t *testing.T) {
	r := reader()
	cm := encode(t, &corev1.ConfigMap{ObjectMeta: meta("a", "x")}, "v1", "ConfigMap")
	thing := func(version, namespace string) []byte {
		return []byte(`{"kind":"W","apiVersion":"e.io/` + version + `","metadata":{"name":"x"` + namespace + `}}`)
	}
	definition := []byte(`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"ws.e.io"},"spec":{"group":"e.io","scope":"Cluster","names":{"plural":"ws","kind":"W"},"versions":[{"name":"v1","served":true,"storage":true}]}}`)
	for key, value := range map[string][]byte{
		"/registry/configmaps/a/x": cm, "/registry/configmaps/a/y": cm, "/registry/e.io/ws/x": thing("v2", ""), "/registry/e.io/ws/a/x": thing("v1", `,"namespace":"a"`),
		"/registry/f.io/ws/x": []byte(strings.ReplaceAll(string(thing("v1", "")), "e.io", "f.io")), "compact_rev_key": nil,
		"/registry/apiextensions.k8s.io/customresourcedefinitions/ws.e.io": definition,
	} {
		take(t, r, foreign.Entry{Key: key, Value: value, ModRevision: 1})
	}
	got := r.Report()
	want := []string{
		"ws.e.io: 1 objects are in a namespace, unlike the definition", "ws.e.io: 1 objects are of version v2, which the definition does not have (v1)",
		"ws.f.io: 1 objects have no definition in the source: they are not served before there is one",
	}
	if diff := cmp.Diff(want, got.Warnings); diff != "" {
		t.Error(diff)
	}
	if got.Entries != 7 || got.Objects != 5 || got.Undecodable != 1 || len(got.Problems) != 1 || got.Problems[0].Key != "/registry/configmaps/a/y" || len(got.Left) != 1 || got.Left[0].Keys != 1 || len(got.Resources) != 4 || got.Resources[0].Name != "configmaps" {
		t.Errorf("%+v", got)
	}
}
