package release_test

import (
	"bufio"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/server/release"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]release.Version{"1.32": release.V132, "v1.34": release.V134, "1.36": release.V136, "1.31": release.Of(31), "1.37": release.Of(37)} {
		got, err := release.Parse(text)
		if err != nil || got != want || got.String() != strings.TrimPrefix(text, "v") || got.Known() != (got >= release.Oldest && got <= release.Newest) {
			t.Errorf("Parse(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "1.", "2.32", "1.32.4", "1.-1", "one.two", "1.99999999"} {
		if got, err := release.Parse(text); err == nil || !strings.Contains(err.Error(), "want one of 1.32, 1.33, 1.34, 1.35, 1.36") {
			t.Errorf("Parse(%q) = %v, %v", text, got, err)
		}
	}
	var zero release.Version
	if zero != release.Default || !zero.Known() || release.Of(31).Known() || release.Of(37).Known() {
		t.Errorf("the zero value is %v, known %t", zero, zero.Known())
	}
	if diff := cmp.Diff([]release.Version{release.V132, release.V133, release.V134, release.V135, release.V136}, release.All()); diff != "" {
		t.Error(diff)
	}
}

// span is in which minor releases something is: since ... gone-1.
type span struct{ since, gone int }

func (s span) in(v release.Version) bool {
	return s.since <= v.Minor() && (s.gone == 0 || v.Minor() < s.gone)
}

// recorded are the types of testdata/fields.txt.
type recorded struct {
	span
	members map[string]span
}

func known(t *testing.T) map[string]recorded {
	t.Helper()
	file, err := os.Open("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all := map[string]recorded{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), " ")
		name, in, _ := strings.Cut(name, "=")
		row := recorded{spanOf(t, in), map[string]span{}}
		for rest != "" {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				t.Fatalf("%s: %v", lines.Text(), err)
			}
			member, _ := strconv.Unquote(quoted)
			rest = rest[len(quoted):]
			in, next, _ := strings.Cut(rest, " ")
			row.members[member], rest = spanOf(t, strings.TrimPrefix(in, "=")), next
		}
		all[name] = row
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func spanOf(t *testing.T, text string) (s span) {
	t.Helper()
	since, gone, _ := strings.Cut(text, "-")
	for value, into := range map[string]*int{since: &s.since, gone: &s.gone} {
		if value == "" {
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		*into = n
	}
	return s
}

// TestLibrariesAreKnown finds what the libraries have and the table does not: they have moved to a
// newer release, which belongs into gen/main.go.
func TestLibrariesAreKnown(t *testing.T) {
	types := known(t)
	seen := map[reflect.Type]bool{}
	missing := 0
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
			walk(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typ] || !strings.HasPrefix(typ.PkgPath(), "k8s.io/") {
			return
		}
		seen[typ] = true
		row, ok := types[typ.PkgPath()+"."+typ.Name()]
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || !f.IsExported() {
				continue
			}
			if in, has := row.members[name]; name != "" && (!ok || !has || in.gone != 0 && !in.in(release.Newest) && !in.in(release.Oldest)) {
				missing++
				t.Errorf("%s.%s has the field %s, which the table of releases lacks: name the release in gen/main.go and run go generate ./server/release", typ.PkgPath(), typ.Name(), name)
			}
			walk(f.Type)
		}
	}
	for _, typ := range scheme.Scheme.AllKnownTypes() {
		walk(typ)
	}
	walk(reflect.TypeFor[apiextensions.CustomResourceDefinition]())
	walk(reflect.TypeFor[apiextensions.ConversionReview]())
	walk(reflect.TypeFor[apiregistration.APIService]())
	if len(seen) < 700 {
		t.Errorf("only %d types were found", len(seen))
	}
}

// TestTableIsTheText compares what the server knows with the text of all fields.
func TestTableIsTheText(t *testing.T) {
	changed := 0
	for name, row := range known(t) {
		if row.since == 0 && row.gone != 0 {
			continue // only a copy of the type, if any, is left
		}
		dot := strings.LastIndexByte(name, '.')
		typ := release.TypeNamed(name[:dot], name[dot+1:])
		for _, v := range release.All() {
			var lacks int
			for member, in := range row.members {
				if typ.Has(v, member) != (row.in(v) && in.in(v)) {
					t.Errorf("%s has %q in %s: %t", name, member, v, typ.Has(v, member))
				}
				if !in.in(v) {
					lacks++
				}
			}
			if got := len(typ.Lacks(v)); got != lacks {
				t.Errorf("%s lacks %d members in %s, want %d", name, got, v, lacks)
			}
			changed += lacks
			if typ.In(v) != row.in(v) {
				t.Errorf("%s is in %s: %t", name, v, typ.In(v))
			}
		}
	}
	if changed == 0 {
		t.Error("no field came with a release")
	}
}

// since returns the oldest release for which ok holds.
func since(ok func(release.Version) bool) string {
	for _, v := range release.All() {
		if ok(v) {
			return v.String()
		}
	}
	return "never"
}

func TestFields(t *testing.T) {
	for path, want := range map[string]string{
		"PodSpec.hostnameOverride": "1.34", "Container.image": "1.32", "Container.restartPolicyRules": "1.34", "LinuxContainerUser.uid": "1.32",
		"PodSpec.nothing": "1.32", "Lifecycle.stopSignal": "1.33", "EnvVarSource.fileKeyRef": "1.34", "PodSpec.schedulingGroup": "1.36",
		"ConfigMap.data": "1.32", "NodeAllocatableResourceClaimStatus.containers": "1.36",
		"PodSpec.evictionResponders": "never", // of 1.37, whose modules a program with this server may select
	} {
		name, field, _ := strings.Cut(path, ".")
		if got := since(func(v release.Version) bool { return release.TypeNamed("k8s.io/api/core/v1", name).Has(v, field) }); got != want {
			t.Errorf("%s came with %s, want %s", path, got, want)
		}
	}
	for v, want := range map[release.Version][]string{
		release.V132: {"evictionResponders", "hostnameOverride", "schedulingGroup", "workloadRef"}, release.V136: {"evictionResponders", "workloadRef"},
	} {
		if diff := cmp.Diff(want, release.TypeOf(reflect.TypeFor[[]*corev1.PodSpec](), v).Lacks(v)); diff != "" {
			t.Errorf("%s: %s", v, diff)
		}
	}
}

func TestKinds(t *testing.T) {
	for text, want := range map[string]string{ // in each release: . not yet, + there, d deprecated, - removed
		"v1/Pod": "+++++", "v1/Endpoints": "+dddd", "networking.k8s.io/v1/ServiceCIDR": ".++++", "networking.k8s.io/v1beta1/ServiceCIDR": "+dddd",
		"authentication.k8s.io/v1beta1/SelfSubjectReview": "d----", "resource.k8s.io/v1alpha3/ResourceClaim": "+----", "resource.k8s.io/v1/ResourceClaim": "..+++",
		"resource.k8s.io/v1alpha3/DeviceTaintRule": ".dddd", "certificates.k8s.io/v1alpha1/PodCertificateRequest": "..---", "scheduling.k8s.io/v1alpha1/Workload": "...--",
		"scheduling.k8s.io/v1alpha2/Workload": "....+", "storagemigration.k8s.io/v1alpha1/StorageVersionMigration": "+----", "storage.k8s.io/v1alpha1/VolumeAttributesClass": "d----",
		"admissionregistration.k8s.io/v1beta1/ValidatingAdmissionPolicy": "dd---", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy": "....+",
		"coordination.k8s.io/v1beta1/LeaseCandidate": ".dddd", "apps/v1beta1/Deployment": "-----", "example.com/v1/Widget": "+++++",
	} {
		parts := strings.Split(text, "/")
		k := schema.GroupVersionKind{Version: parts[len(parts)-2], Kind: parts[len(parts)-1]}
		if len(parts) == 3 {
			k.Group = parts[0]
		}
		var got strings.Builder
		for _, v := range release.All() {
			switch {
			case !v.Introduced(k):
				got.WriteByte('.')
			case v.Removed(k):
				got.WriteByte('-')
			case v.Deprecated(k):
				got.WriteByte('d')
			default:
				got.WriteByte('+')
			}
		}
		if got.String() != want {
			t.Errorf("%s is %s, want %s", text, &got, want)
		}
	}
	if got := release.V133.Lifecycle(schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1beta1", Kind: "VolumeAttributesClass"}); got.Replacement.Version != "v1" {
		t.Errorf("1.33 replaces VolumeAttributesClass v1beta1 by %v", got.Replacement)
	}
	if got := release.V132.Lifecycle(schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1beta1", Kind: "VolumeAttributesClass"}); !got.Replacement.Empty() {
		t.Errorf("1.32 replaces VolumeAttributesClass v1beta1 by %v", got.Replacement)
	}
}
