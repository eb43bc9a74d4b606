package integrity_test

import (
	"encoding/json"
	"math/rand"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/integrity"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

var catalogue = kinds.NewCatalogue(builtin.Resources())

var own = jsoncodec.New(jsoncodec.Settings{View: catalogue.Release().View()})

func read(resource, namespace, name, value string) ([]byte, error) {
	key := sqlstore.Key{Resource: resource, Namespace: namespace, Name: name}
	return integrity.Read(own, catalogue.ByStorage(resource), &sqlstore.Row{Key: key, Revision: 7, Value: []byte(value)})
}

// TestCorrupt: values in the table that are not the object of their key.
func TestCorrupt(t *testing.T) {
	const head = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u"`
	const custom = `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","namespace":"n"`
	for _, c := range []struct{ resource, value, want string }{
		{"configmaps", ``, "not valid JSON: unexpected end of JSON input"},
		{"configmaps", `nonsense`, "not valid JSON"},
		{"configmaps", sqlstore.SealHead("aesgcm", "key1") + "\x00", `it is encrypted (aesgcm, key "key1"), and --encryption-provider-config is not given`},
		{"things.example.com", sqlstore.SealedPrefix, `it is encrypted (, key ""), and`},
		{"configmaps", `null`, "not an API object"},
		{"configmaps", `[]`, "not an API object"},
		{"configmaps", `"text"`, "not an API object"},
		{"configmaps", `{}`, "it names no kind"},
		{"configmaps", `{"kind":"ConfigMap", "apiVersion":"v1"}`, "it has no metadata"},
		{"configmaps", head, "not valid JSON"},
		{"configmaps", head + `}} {}`, "not valid JSON"},
		{"configmaps", head + `},"data":{"a":5}}`, "cannot unmarshal number into Go struct field ConfigMap.data of type string"},
		{"configmaps", head + `},"data":[]}`, "cannot unmarshal array"},
		{"configmaps", head + `},"binaryData":{"a":"?"}}`, "illegal base64"},
		{"configmaps", head + `,"labels":{"a":{}}}}`, "cannot unmarshal object"},
		{"configmaps", head + `,"creationTimestamp":"yesterday"}}`, "parsing time"},
		{"configmaps", head + `,"finalizers":"x"}}`, "cannot unmarshal string"},
		{"configmaps", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","namespace":"n"}}`, "it is a Secret of v1, in the place of a ConfigMap of v1"},
		{"configmaps", `{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"a","namespace":"n"}}`, "it is a ConfigMap of v2, in the place of a ConfigMap of v1"},
		{"configmaps", `{"kind":"ConfigMap","apiVersion":"a/b/c","metadata":{"name":"a","namespace":"n"}}`, "its API version is none"},
		{"configmaps", `{"metadata":{"name":"a","namespace":"n"}}`, "it names no kind"},
		{"configmaps", strings.Replace(head, `"a"`, `"b"`, 1) + `}}`, `it calls itself "b" in namespace "n"`},
		{"configmaps", strings.Replace(head, `"n"`, `"m"`, 1) + `}}`, `it calls itself "a" in namespace "m"`},
		{"configmaps", strings.Replace(head, `"name":"a",`, ``, 1) + `}}`, `it calls itself "" in namespace "n"`},
		{"configmaps", head + `},"data":` + strings.Repeat(`{"a":`, 20000) + `1` + strings.Repeat(`}`, 20000) + `}`, "exceeded max depth"},
		{"things.example.com", custom, "not valid JSON"},
		{"things.example.com", custom + `,"labels":{"a":5}}}`, "cannot unmarshal number"},
		{"things.example.com", custom + `,"ownerReferences":{}}}`, "cannot unmarshal object"},
		{"things.example.com", custom + `,"deletionTimestamp":5}}`, "cannot unmarshal number"},
		{"things.example.com", strings.Replace(custom, "example.com", "example.org", 1) + `}}`, `which is not of the group "example.com"`},
		{"things.example.com", strings.Replace(custom, `"a"`, `"b"`, 1) + `}}`, `it calls itself "b"`},
		{"things.example.com", strings.Replace(custom, `"Thing"`, `5`, 1) + `}}`, "cannot unmarshal number"},
		{"things.example.com", strings.Replace(custom, `"kind":"Thing",`, ``, 1) + `}}`, "it names no kind"},
		{"things.example.com", custom + `},"spec":` + strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000) + `}`, "exceeded max depth"},
	} {
		if out, err := read(c.resource, "n", "a", c.value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.200s: %q, %v, want %q", c.value, out, err, c.want)
		}
	}
}

// TestRewritten: a readable value in another form than this server writes is served in that form.
func TestRewritten(t *testing.T) {
	const created = `"creationTimestamp":null`
	for _, c := range []struct{ resource, value, want string }{
		{ // white space and another order, as jsonb leaves them
			"configmaps", `{ "apiVersion": "v1", "data": {"b": "2", "a": "1"}, "kind": "ConfigMap", "metadata": {"uid": "u", "namespace": "n", "name": "a"} }`,
			`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u",` + created + `},"data":{"a":"1","b":"2"}}`,
		},
		{ // an unknown field, a duplicate, a resourceVersion where none is looked for
			"configmaps", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u",` + created + `,"labels":{"l":"m"},"resourceVersion":"3"},"dato":1,"data":{"a":"1","a":"2"}}`,
			`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u",` + created + `,"labels":{"l":"m"}},"data":{"a":"2"}}`,
		},
		{ // text that is none
			"configmaps", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u",` + created + `},"data":{"a":"` + "\xff" + `"}}`,
			`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u",` + created + `},"data":{"a":"` + `\ufffd` + `"}}`,
		},
		{
			"things.example.com", `{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"uid":"u","resourceVersion":"3","namespace":"n","name":"a"},"spec":{"b":1,"a":{"c":1,"c":2.5}}}`,
			`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","namespace":"n","uid":"u"},"spec":{"a":{"c":2.5},"b":1}}`,
		},
	} {
		out, err := read(c.resource, "n", "a", c.value)
		if got := strings.ReplaceAll(string(out), "\ufffd", `\ufffd`); err != nil || got != c.want {
			t.Errorf("%s:\n%v %s, want\n%s", c.value, err, got, c.want)
		}
		again, err := read(c.resource, "n", "a", string(out))
		if err != nil || string(again) != string(out) {
			t.Errorf("%s again: %v %s", out, err, again)
		}
	}
}

// TestEmptyListsKept: kinds that are stored with their empty lists keep them, and only those.
func TestEmptyListsKept(t *testing.T) {
	for _, c := range []struct{ resource, name, value, want string }{
		{
			"customresourcedefinitions.apiextensions.k8s.io", "things.example.com",
			` {"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"things.example.com"},"spec":{"versions":[]},"status":{"conditions":[],"storedVersions":[]}}`,
			`"storedVersions":[]`,
		},
		{
			"roles.rbac.authorization.k8s.io", "a",
			` {"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"a"},"rules":[]}`,
			`"rules":null`,
		},
	} {
		out, err := read(c.resource, "", c.name, c.value)
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v %s, want %s", c.resource, err, out, c.want)
		}
	}
}

// TestShortReasons: the text about a value does not grow with it.
func TestShortReasons(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, value := range []string{
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"` + long + `","namespace":"n"}}`,
		`{"kind":"` + long + `","apiVersion":"v1","metadata":{"name":"a","namespace":"n"}}`,
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","creationTimestamp":"` + long + `"}}`,
	} {
		if _, err := read("configmaps", "n", "a", value); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%.100s: %.100v", value, err)
		}
	}
}

// TestOwnIsPassedOn: values that this server wrote are neither refused nor rewritten.
func TestOwnIsPassedOn(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	kept, all := 0, 0
	for _, res := range builtin.Resources() {
		if res.Storage == nil || res.New == nil || res.GVK() != res.Storage.GVK {
			continue
		}
		for range 5 {
			obj := res.New()
			sample.Fill(r, obj)
			obj.SetName("a")
			obj.SetNamespace("n")
			obj.SetResourceVersion("")
			obj.GetObjectKind().SetGroupVersionKind(res.Storage.GVK)
			kinds.DropEmpty(obj)
			data, err := own.Append(nil, obj)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := own.Decode(data, res.New(), codecs.Ignore); err != nil {
				continue // a sample that cannot be read back
			}
			out, err := read(res.Storage.Key, "n", "a", string(data))
			if err != nil {
				t.Errorf("%s: %v\n%s", res.Storage.Key, err, data)
				continue
			}
			all++
			if string(out) == string(data) {
				kept++
			}
		}
	}
	if all < 200 || kept < all*9/10 {
		t.Errorf("%d of %d are passed on", kept, all)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "spec": map[string]any{"z": int64(1), "a": 1.5},
		"metadata": map[string]any{"name": "a", "namespace": "n", "managedFields": []any{map[string]any{"manager": "m", "operation": "Apply", "fieldsV1": map[string]any{"f:spec": map[string]any{`k:{"a":1}`: map[string]any{}}}}}},
	}}
	data, err := own.Append(nil, u)
	if err != nil {
		t.Fatal(err)
	}
	value := []byte(data)
	out, err := integrity.Read(own, nil, &sqlstore.Row{Key: sqlstore.Key{Resource: "things.example.com", Namespace: "n", Name: "a"}, Value: value})
	if err != nil || &out[0] != &value[0] {
		t.Errorf("%v: %s made of %s", err, out, data)
	}
}

// FuzzRead: whatever the value, the served bytes are JSON of the key's object.
func FuzzRead(f *testing.F) {
	f.Add(true, []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n"},"data":{"a":"b"}}`))
	f.Add(false, []byte(`{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"a","namespace":"n"},"spec":{"b":1,"a":2}}`))
	f.Fuzz(func(t *testing.T, builtIn bool, value []byte) {
		resource := "things.example.com"
		if builtIn {
			resource = "configmaps"
		}
		out, err := read(resource, "n", "a", string(value))
		if err != nil {
			return
		}
		var obj struct {
			Metadata struct{ Name, Namespace string }
		}
		if err := json.Unmarshal(out, &obj); err != nil || obj.Metadata.Name != "a" || obj.Metadata.Namespace != "n" {
			t.Fatalf("%q of %q: %v", out, value, err)
		}
	})
}
