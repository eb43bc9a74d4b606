package custom_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/custom"
	"github.com/rowlock/rowlock/server/release"
)

const boats = `
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, kind: Boat}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.oars, statusReplicasPath: .status.oars, labelSelectorPath: .status.who}}
    selectableFields: [{jsonPath: .spec.color}]
    additionalPrinterColumns:
    - {name: Oars, type: integer, jsonPath: .spec.oars}
    - {name: Color, type: string, jsonPath: .spec.color, priority: 1}
    - {name: Launched, type: date, jsonPath: .spec.launched}
    - {name: Speed, type: number, jsonPath: .spec.speed}
    - {name: Any, type: string, jsonPath: .spec}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {color: {type: string, default: red}}}, status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
  - {name: v1beta1, served: true, storage: false, deprecated: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {color: {type: string}}}}}}}
  - {name: v1alpha1, served: false, storage: false, deprecated: true, deprecationWarning: gone soon, schema: {openAPIV3Schema: {type: object}}}
`

func resources(t *testing.T) map[string]*kinds.Resource {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(boats), crd); err != nil {
		t.Fatal(err)
	}
	crd.Status.AcceptedNames = crd.Spec.Names
	crd.Status.AcceptedNames.Singular, crd.Status.AcceptedNames.ListKind = "boat", "BoatList"
	d, err := custom.New(crd, 10, nil, release.Default)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*kinds.Resource{}
	for _, r := range d.Resources {
		out[r.Version] = r
	}
	return out
}

func boat(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte("apiVersion: example.com/v1\nkind: Boat\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestResources(t *testing.T) {
	all := resources(t)
	v1, beta, alpha := all["v1"], all["v1beta1"], all["v1alpha1"]
	if v1.Off || beta.Off || !alpha.Off {
		t.Error("versions that are served, and not")
	}
	if v1.Deprecation != nil || beta.Deprecation.Warning != "example.com/v1beta1 Boat is deprecated; use example.com/v1 Boat" || alpha.Deprecation.Warning != "gone soon" {
		t.Errorf("deprecations: %v %v", beta.Deprecation, alpha.Deprecation)
	}
	if v1.Sub("status") == nil || v1.Sub("scale") == nil || len(beta.Subresources) != 0 {
		t.Error("subresources")
	}
	if v1.FieldLabels["spec.color"] != "spec.color" || len(beta.FieldLabels) != 0 || beta.FieldLabels == nil || len(beta.Storage.Fields) != 1 {
		t.Error("selectable fields: the store knows all, each version its own")
	}
	if v1.Storage.GVK != v1.GVK() || beta.Storage.GVK != v1.GVK() || v1.ToStorage != nil || beta.ToStorage == nil {
		t.Error("what is stored")
	}
}

func TestColumns(t *testing.T) {
	v1 := resources(t)["v1"]
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string][]any{
		"metadata: {name: a}": {"a", nil, nil, nil, nil, nil},
		"metadata: {name: b}\nspec: {oars: 4, color: red, launched: '2026-01-01T00:00:00Z', speed: 2}": {
			"b", int64(4), "red", "24h", float64(2), `{"color":"red","launched":"2026-01-01T00:00:00Z","oars":4,"speed":2}`},
		"metadata: {name: c}\nspec: {oars: 4.9, color: null, launched: soon, speed: fast}": {
			"c", int64(4), "<no value>", "<invalid>", nil, `{"color":null,"launched":"soon","oars":4.9,"speed":"fast"}`},
	} {
		if got := v1.Columns.Cells(boat(t, text), now); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %#v\nwant %#v", text, got, want)
		}
	}
	var names []string
	for _, d := range resources(t)["v1beta1"].Columns.Definitions {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"Name", "Age"}) {
		t.Errorf("columns without any: %v", names)
	}
}

// TestColumnsOfManyValues: the cells of one object are bounded, whatever columns its definition has.
func TestColumnsOfManyValues(t *testing.T) {
	cells := func(n int, path string, spec any) []any {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict([]byte(boats), crd); err != nil {
			t.Fatal(err)
		}
		crd.Status.AcceptedNames = crd.Spec.Names
		column := apiextensionsv1.CustomResourceColumnDefinition{Name: "Any", Type: "string", JSONPath: path}
		crd.Spec.Versions[0].AdditionalPrinterColumns = slices.Repeat([]apiextensionsv1.CustomResourceColumnDefinition{column}, n)
		d, err := custom.New(crd, 10, nil, release.Default)
		if err != nil {
			t.Fatal(err)
		}
		u := boat(t, "metadata: {name: a}")
		u.Object["spec"] = spec
		return d.Resources[0].Columns.Cells(u, time.Time{})
	}
	var deep any = "end"
	for range 200 {
		deep = []any{deep}
	}
	if got := cells(3, ".spec..[*]..[*]..[*]", deep); !reflect.DeepEqual(got, []any{"a", nil, nil, nil}) {
		t.Errorf("paths that lead to a million values: %.200v", got)
	}
	size := 0
	got := cells(1_000, ".spec", map[string]any{"text": strings.Repeat("x", 1<<20)})
	for _, cell := range got {
		text, _ := cell.(string)
		size += len(text)
	}
	if len(got) != 1_001 || size < 1<<20 || size > 8<<20 {
		t.Errorf("%d cells of %d bytes", len(got), size)
	}
}

func TestStrategy(t *testing.T) {
	v1 := resources(t)["v1"]
	obj := boat(t, "metadata: {name: a}\nspec: {oars: 1}\nstatus: {oars: 9}")
	v1.Storage.PrepareForCreate(t.Context(), obj)
	if _, has := obj.Object["status"]; has || obj.GetGeneration() != 1 {
		t.Errorf("a new object: %v", obj.Object)
	}
	old := boat(t, "metadata: {name: a, generation: 3}\nspec: {oars: 1}\nstatus: {oars: 1}")
	for text, generation := range map[string]int64{
		"metadata: {name: a, generation: 3, labels: {a: b}}\nspec: {oars: 1}\nstatus: {oars: 2}": 3,
		"metadata: {name: a, generation: 3}\nspec: {oars: 2}":                                    4,
		"metadata: {name: a, generation: 3}":                                                     4,
		"metadata: {name: a, generation: 3}\nspec: {oars: 1}\nextra: 1":                          4,
	} {
		now := boat(t, text)
		v1.Storage.PrepareForUpdate(t.Context(), now, old)
		if n, _, _ := unstructured.NestedInt64(now.Object, "status", "oars"); now.GetGeneration() != generation || n != 1 {
			t.Errorf("%s\nis %v", text, now.Object)
		}
	}
	now := boat(t, "metadata: {name: b, generation: 9}\nspec: {oars: 2}\nstatus: {oars: 2}\nextra: 1")
	now.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
	v1.Sub("status").Update.PrepareForUpdate(t.Context(), now, old)
	if n, _, _ := unstructured.NestedInt64(now.Object, "spec", "oars"); n != 1 || now.GetName() != "a" || now.GetGeneration() != 3 ||
		now.Object["extra"] != nil || len(now.GetManagedFields()) != 1 {
		t.Errorf("a write of the status changes %v", now.Object)
	}
	other := boat(t, "metadata: {name: a}")
	other.SetKind("Ship")
	if errs := v1.Storage.Validate(t.Context(), other); len(errs) != 1 || errs[0].Error() != `kind: Invalid value: "Ship": must be Boat` {
		t.Errorf("an object of another kind: %v", errs)
	}
	held := boat(t, "metadata: {name: a, finalizers: [plain, of.example.com, example.com/x, foregroundDeletion, kubernetes]}")
	const end = " to avoid accidental conflicts with other finalizer writers"
	if w := v1.Storage.Warnings(t.Context(), held, nil); !slices.Equal(w, []string{
		`metadata.finalizers: "of.example.com": prefer a domain-qualified finalizer name including a path (/)` + end,
		`metadata.finalizers: "plain": prefer a domain-qualified finalizer name` + end,
	}) {
		t.Errorf("warnings: %q", w)
	}
}

func TestScale(t *testing.T) {
	m := resources(t)["v1"].Sub("scale").Scale
	obj := boat(t, "metadata: {name: a}\nspec: {oars: 3}\nstatus: {oars: 2, who: a=b}")
	if spec, status := m.Replicas(obj); spec != 3 || status != 2 || m.Selector(obj) != "a=b" || m.Check(obj) != nil {
		t.Error("a scale that is there")
	}
	m.SetReplicas(obj, 7)
	if spec, _ := m.Replicas(obj); spec != 7 {
		t.Error("a scale that was set")
	}
	if err := m.Check(boat(t, "metadata: {name: a}")); err == nil || !strings.Contains(err.Error(), `the spec replicas field ".spec.oars" does not exist`) {
		t.Errorf("a scale that is not there: %v", err)
	}
}

// TestVersions follows objects through the store: a read returns the defaults of the stored version
// and the fields of the requested one.
func TestVersions(t *testing.T) {
	all := resources(t)
	stored := func() kinds.Object { return boat(t, "metadata: {name: a}\nspec: {oars: 3}") }
	for version, want := range map[string]map[string]any{
		"v1":      {"oars": int64(3), "color": "red"},
		"v1beta1": {"color": "red"},
	} {
		out, err := all[version].Schema.FromStore(t.Context(), stored())
		if err != nil {
			t.Fatal(err)
		}
		u := out[0].(*unstructured.Unstructured)
		if got := u.Object["spec"]; !reflect.DeepEqual(got, want) || u.GetAPIVersion() != "example.com/"+version {
			t.Errorf("%s: %v", version, u.Object)
		}
	}
	sent := boat(t, "metadata: {name: a}\nspec: {oars: 3}")
	sent.SetAPIVersion("example.com/v1beta1")
	unknown, err := all["v1beta1"].Schema.Coerce(sent)
	if err != nil || !slices.Equal(unknown, []string{"spec.oars"}) {
		t.Errorf("unknown: %v %v", unknown, err)
	}
	out, err := all["v1beta1"].Schema.ToStore(t.Context(), sent)
	if err != nil {
		t.Fatal(err)
	}
	u := out.(*unstructured.Unstructured)
	if got := u.Object["spec"]; !reflect.DeepEqual(got, map[string]any{"color": "red"}) || u.GetAPIVersion() != "example.com/v1" {
		t.Errorf("to be stored: %v", u.Object)
	}
	if all["v1"].Schema.Clean(10) || !all["v1"].Schema.Clean(11) || all["v1beta1"].Schema.Clean(11) {
		t.Error("what needs no second look")
	}
}
