package descriptions

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"
	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1alpha1 "k8s.io/api/storage/v1alpha1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/runtime"
	aggregator "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	core "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core"

	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/release/words"
)

var update = flag.Bool("update", false, "write the data")

// older register the kinds of versions that the server has no Go types of.
var older = runtime.NewSchemeBuilder(
	admissionregistrationv1alpha1.AddToScheme, admissionregistrationv1beta1.AddToScheme, authenticationv1beta1.AddToScheme, certificatesv1alpha1.AddToScheme,
	coordinationv1alpha2.AddToScheme, networkingv1beta1.AddToScheme, resourcev1beta2.AddToScheme, storagev1alpha1.AddToScheme, storagev1beta1.AddToScheme,
)

// TestDataIsUpToDate: the data agrees with the linked packages.
func TestDataIsUpToDate(t *testing.T) {
	types, err := linkedTypes()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := older.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, typ := range scheme.AllKnownTypes() {
		addTypes(types, typ)
	}
	want := data(t, types)
	const file = "data/descriptions.txt"
	if *update {
		write(t, file, want)
		return
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	zr, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	inside, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want || string(inside) != want {
		t.Errorf("%s or its compressed form is out of date: run go generate", file)
	}
}

func write(t *testing.T, file, text string) {
	var b bytes.Buffer
	zw, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(zw, text)
	for _, err := range []error{err, zw.Close(), os.WriteFile(file+".gz", b.Bytes(), 0o644), os.WriteFile(file, []byte(text), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// data has the descriptions by linked packages of the types in documents.
func data(t *testing.T, types map[string]reflect.Type) string {
	needed := map[string]bool{} // the types in documents, and those that they inline
	var need func(name string)
	need = func(name string) {
		needed[name] = true
		if typ := types[name]; typ != nil {
			for in := range inlined(typ) {
				need(Name(in))
			}
		}
	}
	for name := range shown(t) {
		need(name)
	}
	documented := map[string]described{}
	for name, typ := range types {
		by := cmp.Or(types[describing(name, typ)], typ)
		if doc, ok := reflect.Zero(by).Interface().(interface{ SwaggerDoc() map[string]string }); ok && needed[name] {
			d := described{fields: maps.Clone(doc.SwaggerDoc())}
			d.text = d.fields[""]
			delete(d.fields, "")
			documented[name] = d
		}
	}
	published := whole()
	maps.DeleteFunc(published, func(name string, _ described) bool {
		return !needed[name] || types[name] == nil && !slices.Contains(ofNoKind, name)
	})
	// Published descriptions are needed for types that the oldest release would otherwise describe
	// differently. Later releases describe core/v1 as the types do.
	w, err := words.Of(release.Oldest)
	if err != nil {
		t.Fatal(err)
	}
	with := &Library{types: types, documented: documented, published: published, words: w}
	without := &Library{types: types, documented: documented, words: w}
	var b strings.Builder
	lines, seen := 0, map[string]int{}
	add := func(name, source, field, text string) {
		lines++
		fmt.Fprintf(&b, "%s\t%s\t%s\t", name, source, field)
		if at := seen[text]; at > 0 {
			fmt.Fprintln(&b, at)
			return
		}
		seen[text] = lines
		fmt.Fprintln(&b, strconv.Quote(text))
	}
	addAll := func(name, source string, d described) {
		if d.text != "" || len(d.fields) == 0 {
			add(name, source, "", d.text)
		}
		for _, field := range slices.Sorted(maps.Keys(d.fields)) {
			add(name, source, field, d.fields[field])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if d, ok := documented[name]; ok {
			addAll(name, sourceDoc, d)
		}
		d, ok := published[name]
		if !ok {
			continue
		}
		differs := with.Type(name) != without.Type(name)
		for field, text := range d.fields {
			_, values := splitValues(text)
			differs = differs || len(values) > 0 || with.Field(name, field, nil) != without.Field(name, field, nil)
		}
		if differs {
			addAll(name, sourcePublished, d)
		}
	}
	return b.String()
}

// shown returns the types that documents show, with their schemas of the oldest release.
func shown(t *testing.T) iter.Seq2[string, string] {
	t.Helper()
	text, err := os.ReadFile("../data/definitions.txt")
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(string(text)) {
			if name, schema, _ := strings.Cut(line, "\t"); !yield(name, schema) {
				return
			}
		}
	}
}

// whole returns all definitions of all publications. Three packages publish OpenAPI definitions of Go types. Those of
// meta/v1 are in all three; the aggregator's are used, then those of custom resources.
//
// The last is of a library for metrics adapters, which publishes core/v1 for them. It was made of
// an earlier patch release of the same types. No other package describes the values of enumerations
// in core/v1, and quantities, or has the ends of those descriptions that SwaggerDoc cuts off at a
// "---".
func whole() map[string]described {
	out := map[string]described{}
	for _, publication := range []common.GetOpenAPIDefinitions{aggregator.GetOpenAPIDefinitions, apiextensions.GetOpenAPIDefinitions, core.GetOpenAPIDefinitions} {
		for name, definition := range publication(func(string) spec.Ref { return spec.Ref{} }) {
			name = goName(name)
			if _, known := out[name]; known {
				continue
			}
			d := described{text: definition.Schema.Description, fields: make(map[string]string, len(definition.Schema.Properties))}
			for field, schema := range definition.Schema.Properties {
				d.fields[field] = schema.Description
			}
			out[name] = d
		}
	}
	return out
}

// goName returns the name of a type whose publication calls it as documents do.
func goName(name string) string {
	for documents, path := range map[string]string{"io.k8s.apiextensions-apiserver.": "k8s.io/apiextensions-apiserver.", "io.k8s.kube-aggregator.": "k8s.io/kube-aggregator.", "io.k8s.api.": "k8s.io/api.", "io.k8s.apimachinery.": "k8s.io/apimachinery."} {
		if rest, ok := strings.CutPrefix(name, documents); ok {
			name = path + rest
			end := strings.LastIndexByte(name, '.')
			return "k8s.io/" + strings.ReplaceAll(name[len("k8s.io/"):end], ".", "/") + name[end:]
		}
	}
	return name
}

// ofNoKind are types in documents that no kind leads to.
var ofNoKind = []string{"k8s.io/apimachinery/pkg/version.Info", "k8s.io/apimachinery/pkg/apis/meta/v1.Patch"}

// TestAllKindsAreLinked: each kind that documents show is among the types of the groups, or had no descriptions.
func TestAllKindsAreLinked(t *testing.T) {
	l, kinds := read(t), 0
	for name, schema := range shown(t) {
		if strings.HasPrefix(name, "k8s.io/api/") && strings.Contains(schema, `"apiVersion":`) && strings.Contains(schema, `"metadata":`) {
			if kinds++; l.typeOf(name) == nil && l.Type(name) == "" {
				t.Errorf("%s is not linked", name)
			}
		}
	}
	if kinds < 200 {
		t.Errorf("only %d kinds were looked at", kinds)
	}
}

// TestParse: the error for malformed data names its line.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"a.T\tsays\t\n":                         `line 1: "a.T\tsays\t\n"`,
		"a.T\tsays\t\t\"x\"\na.T\tsays\tf\t2\n": `line 2: "a.T\tsays\tf\t2\n"`,
		"a.T\tsays\t\t\"x\"\na.T\tsays\tf\tx\n": `line 2: "a.T\tsays\tf\tx\n"`,
		"a.T\tthinks\t\t\"x\"\n":                `line 1: "a.T\tthinks\t\t\"x\"\n"`,
		"a.T\tsays\t\t\"x\"\na.T\tsays\tf\t1\n": "",
	} {
		documented, _, err := parse(text)
		if got := fmt.Sprint(err); want != "" && got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		if want == "" && (err != nil || documented["a.T"].text != "x" || documented["a.T"].fields["f"] != "x") {
			t.Errorf("%q: %v, %v", text, documented, err)
		}
	}
}
