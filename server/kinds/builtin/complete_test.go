package builtin_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/protobuf/tagged"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/removed"
	"github.com/rowlock/rowlock/server/schema"
)

var update = flag.Bool("update", false, "write testdata/kinds.txt anew")

var (
	// withoutColumns are stored kinds that a stock server shows with names and ages alone.
	withoutColumns = []string{
		"limitranges", "customresourcedefinitions.apiextensions.k8s.io", "roles.rbac.authorization.k8s.io",
		"clusterroles.rbac.authorization.k8s.io", "csistoragecapacities.storage.k8s.io",
	}
	// withoutRules are kinds that anything may be written of, but for the metadata.
	withoutRules = []string{"namespaces", "serviceaccounts"}
	// ownAll are kinds whose spec a write of the status owns where it names it, though it does
	// not change it.
	ownAll = []string{"servicecidrs.networking.k8s.io"}
)

// TestKindsAreComplete finds what a new kind lacks. docs/architecture.md has the order
// of the steps.
func TestKindsAreComplete(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	for _, r := range catalogue.Known() {
		name := r.GroupResource().String()
		lacks := func(what, add string) {
			t.Helper()
			t.Errorf("%s %s has no %s: %s", name, r.Version, what, add)
		}
		if got := r.GoType().Name(); got != r.Kind {
			t.Errorf("%s %s: New makes a %s, and the row says %s: correct one of the two", name, r.Version, got, r.Kind)
		}
		if !defined(r.GoType()) {
			lacks("schema definition", "add the package of its Go type to server/schema/gen/main.go, then go generate ./server/schema")
		}
		if r.Protobuf(nil) && !tagged.Supports(reflect.TypeOf(r.New())) {
			lacks("Protobuf form", "use the Go type of the published API, which has one, or give its fields protobuf tags")
		}
		if catalogue.Retired(r.GVK()) {
			t.Errorf("%s %s is in the table: take it out of the versions that are not, in server/kinds/retired.go", name, r.Version)
		}
		if !discovered(t, r) {
			lacks("place in discovery", "go test ./server/discovery -update, and compare its testdata with what a stock server answers")
		}
		if r.Storage == nil {
			continue
		}
		if r.Storage.ValidateName == nil {
			lacks("rule for names", "set ValidateName of its strategy")
		}
		if (r.Storage.Validate == nil || r.Storage.ValidateUpdate == nil) && !slices.Contains(withoutRules, name) {
			lacks("validation", "set Validate and ValidateUpdate of its strategy")
		}
		if r.Columns.Cells == nil && !slices.Contains(withoutColumns, name) {
			lacks("columns", "set Columns of its row, or add it to withoutColumns where a stock server has none")
		}
		if r.NewStored() == nil || reflect.TypeOf(r.NewStored()) != reflect.TypeOf(catalogue.ByStorage(r.Storage.Key).New()) {
			lacks("object of the stored version", "let rows fill in Storage.New, or set it")
		}
		if r.Sub("scale") != nil && r.Zero == nil {
			lacks("empty value", "set Zero of its row to noReplicas: bookmarks of a stock server show spec.replicas as 0")
		}
		if hasField(r.GoType(), "Status") && r.Sub("status") == nil {
			lacks("status subresource", "add status(...) to the Subresources of its row")
		}
		if s := r.Sub("status"); s != nil && len(s.Update.ResetFields) == 0 && !slices.Contains(ownAll, name) {
			lacks("fields that a write of the status does not own", "set ResetFields of the status strategy, \"spec\" at least")
		}
	}
}

func hasField(t reflect.Type, name string) bool {
	_, ok := t.FieldByName(name)
	return ok
}

// defined reports whether there is an OpenAPI definition of a Go type.
func defined(t reflect.Type) bool {
	host, path, _ := strings.Cut(removed.PackagePath(t.PkgPath()), "/")
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	name := strings.Join(parts, ".") + "." + strings.ReplaceAll(path, "/", ".") + "." + t.Name()
	return len(schema.Definitions(release.Newest, name)) > 0
}

// discovered reports whether the documents that discovery is held to list a resource.
func discovered(t *testing.T, r *kinds.Resource) bool {
	t.Helper()
	file := "apis_" + r.Group + "_" + r.Version + ".json"
	if r.Group == "" {
		file = "api_" + r.Version + ".json"
	}
	data, err := os.ReadFile(filepath.Join("..", "..", "discovery", "testdata", file))
	if err != nil {
		return false
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list.APIResources, func(a metav1.APIResource) bool {
		return a.Name == r.Plural && a.Kind == r.Kind && a.Namespaced == r.Namespaced &&
			slices.Equal(a.ShortNames, r.ShortNames) && slices.Equal(a.Categories, r.Categories)
	})
}

// TestKindsAreRecorded compares details of kinds that are easily forgotten with a file: their
// names in messages, and how often their metadata is checked.
func TestKindsAreRecorded(t *testing.T) {
	const file = "testdata/kinds.txt"
	var got []string
	for _, r := range builtin.Resources() {
		if r.Storage != nil {
			got = append(got, recordOf(r))
		}
	}
	slices.Sort(got)
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s does not have the line\n%s\nSee that a stock server has these names and rules for the kind, then go test -update.", file, line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("no kind is as in the line of %s\n%s", file, line)
		}
	}
}

func recordOf(r *kinds.Resource) string {
	rules := func(m *kinds.MetaRules) string {
		if m == nil {
			m = &kinds.UsualMeta
		}
		out := fmt.Sprintf("%d/%d", m.Updates, m.Wholes)
		if m.AnyFinalizer {
			out += " any finalizer"
		}
		return out
	}
	put := func(s *kinds.Strategy) string {
		out := ""
		if s.CreateOnUpdate {
			out += ", creates"
		}
		if r.Storage.UnconditionalUpdate || s.UnconditionalUpdate {
			out += ", unconditional"
		}
		return out
	}
	line := fmt.Sprintf("%s %s: short %v, registry %s, metadata %s%s", r.GroupResource(), r.Version,
		r.ShortNames, strings.TrimSuffix(strings.TrimPrefix(r.RegistryKey("", ""), "/registry/"), "/"), rules(r.Storage.Meta), put(&r.Storage.Strategy))
	for i := range r.Subresources {
		if s := &r.Subresources[i]; s.Update != nil {
			line += fmt.Sprintf("; %s %s%s", s.Name, rules(s.Update.Meta), put(s.Update))
		}
	}
	return line
}
