package descriptions

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/release"
)

func read(t *testing.T) *Library {
	t.Helper()
	l, err := Read(release.Default)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSources(t *testing.T) {
	l := read(t)
	for _, c := range []struct{ from, got, want string }{
		{"SwaggerDoc of a type", l.Type("k8s.io/api/apps/v1.Deployment"), "Deployment enables"},
		{"SwaggerDoc of a field", l.Field("k8s.io/api/apps/v1.DeploymentSpec", "replicas", nil), "Number of desired pods"},
		{"SwaggerDoc of an inlined struct", l.Field("k8s.io/api/apps/v1.Deployment", "kind", nil), "Kind is a string"},
		{"the aggregator", l.Type("k8s.io/kube-aggregator/pkg/apis/apiregistration/v1.APIService"), "APIService represents"},
		{"custom resources", l.Type("k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceDefinition"), "CustomResourceDefinition represents"},
		{"the metrics library", l.Type("k8s.io/apimachinery/pkg/api/resource.Quantity"), "Quantity is a fixed-point"},
		{"our own words", l.Type("k8s.io/apimachinery/pkg/util/intstr.IntOrString"), "IntOrString is a number or a string"},
	} {
		if !strings.HasPrefix(c.got, c.want) {
			t.Errorf("%s: %.60q, want %q", c.from, c.got, c.want)
		}
	}
	if got := l.Type("example.com/none.None") + l.Field("example.com/none.None", "field", nil) + l.Field("k8s.io/api/core/v1.Pod", "none", nil); got != "" {
		t.Errorf("of what is not there: %q", got)
	}
}

// A list of values ends the description of a field, even if only another type's field of the same enumeration
// has sentences, or no field has.
func TestValues(t *testing.T) {
	l := read(t)
	core := l.Field("k8s.io/api/core/v1.ContainerPort", "protocol", []string{"TCP"})
	_, want := splitValues(core)
	_, got := splitValues(l.Field("k8s.io/api/networking/v1.NetworkPolicyPort", "protocol", []string{"TCP"}))
	if want["TCP"] == "" || !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	const text = "Some field.\n\nPossible enum values:\n - `\"\"` is nothing.\n - `\"B\"`"
	rest, sentences := splitValues(text)
	if again := rest + joinValues([]string{"", "B"}, sentences); again != text || rest != "Some field." {
		t.Errorf("%q became %q", text, again)
	}
}

// TestPublicationsAreOfTheseTypes finds publications that were made from releases of the types other than the
// linked ones. SwaggerDoc leaves out the text after a "---" and some backslashes.
func TestPublicationsAreOfTheseTypes(t *testing.T) {
	l, compared := read(t), 0
	l.published = whole()
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, `\`, "")) }
	for name, d := range l.published {
		typ := l.types[name]
		if typ == nil {
			continue
		}
		for field, text := range d.fields {
			text, _ := splitValues(text)
			if own := l.fieldDoc(name, typ, field); own != "" {
				compared++
				if !strings.HasPrefix(plain(text), plain(own)) {
					t.Errorf("%s %s\n is published as %q\nand its own description is %q", name, field, text, own)
				}
			}
		}
	}
	if compared < 1000 {
		t.Errorf("only %d fields were compared", compared)
	}
}

// TestRemovedTypesSayWhatTheReleaseSaid: types that use the descriptions of another version have those of
// that version in a release, and not in the newest.
func TestRemovedTypesSayWhatTheReleaseSaid(t *testing.T) {
	l, compared, older := read(t), 0, 0
	newest, err := Read(release.Newest)
	if err != nil {
		t.Fatal(err)
	}
	for name, typ := range l.types {
		other := describing(name, typ)
		if other == name || l.types[other] == nil {
			continue
		}
		for field, text := range l.documented[name].fields {
			if _, ok := fieldOf(l.types[other], field); !ok {
				continue
			}
			compared++
			if got, want := l.Field(name, field, nil), l.Field(other, field, nil); got != want {
				t.Errorf("%s %s\n is %q\nwant %q", name, field, got, want)
			}
			if text == newest.Field(name, field, nil) && text != l.Field(name, field, nil) {
				older++
			}
		}
	}
	if compared < 50 || older < 10 {
		t.Errorf("%d fields were compared, of which %d say something else in the newest release", compared, older)
	}
}

// TestOwnWordsAreNeeded finds entries of our own that some source makes superfluous, or
// that are of nothing.
func TestOwnWordsAreNeeded(t *testing.T) {
	l := read(t)
	l.published = whole()
	for name := range ownTypes {
		if l.published[name].text != "" || l.types[name] == nil || l.documented[name].text != "" {
			t.Errorf("%s", name)
		}
	}
	for name, fields := range ownFields {
		for field := range fields {
			if _, ok := fieldOf(l.types[name], field); !ok || l.published[name].fields[field] != "" || l.fieldDoc(name, l.types[name], field) != "" {
				t.Errorf("%s %s", name, field)
			}
		}
	}
	used := map[string]bool{}
	for name, typ := range l.types {
		for i := range typ.NumField() {
			f := typ.Field(i)
			field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			used[Name(bare(f.Type))] = true
			_, sentences := splitValues(l.published[name].fields[field])
			for value := range ownValues[Name(bare(f.Type))] {
				if sentences[value] != "" {
					t.Errorf("%s of %s is published with %s", value, Name(bare(f.Type)), name)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ownValues)) {
		if !used[name] {
			t.Errorf("no field is a %s", name)
		}
	}
}
