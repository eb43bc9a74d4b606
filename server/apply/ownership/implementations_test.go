package ownership

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/schema"
)

// broken is a planned implementation that panics.
type broken struct{ asked int }

func (b *broken) track(write) ([]metav1.ManagedFieldsEntry, error) {
	b.asked++
	panic("no such field")
}

func (b *broken) reapply(application) (kinds.Object, error) {
	b.asked++
	panic("no such field")
}

// TestPanicLeadsToTheLibrary: a write survives a panic in the planned implementation, which handles no such
// object from then on.
func TestPanicLeadsToTheLibrary(t *testing.T) {
	var log bytes.Buffer
	var counted []string
	m := New(Config{
		Schemas: schema.New(kinds.NewCatalogue(builtin.Resources())),
		Count:   func(name string) { counted = append(counted, name) },
		Log:     slog.New(slog.NewTextHandler(&log, nil)),
	})
	b := &broken{}
	m.planned = b
	r := m.schemas.Catalogue().Lookup("", "v1", "configmaps")
	for range 3 {
		obj := configMap()
		if err := m.AfterCreate(r, "", obj, "m", time.Now()); err != nil || len(obj.ManagedFields) != 1 {
			t.Errorf("%v %v", err, obj.ManagedFields)
		}
	}
	if got, want := fmt.Sprint(counted), "[failed standard standard standard]"; got != want || b.asked != 1 {
		t.Errorf("counted %s, not %s; asked %d times", got, want, b.asked)
	}
	if n := strings.Count(log.String(), "no such field"); n != 1 || !strings.Contains(log.String(), "ConfigMap") {
		t.Errorf("%d log lines:\n%s", n, &log)
	}
	p := pod()
	if err := m.AfterCreate(m.schemas.Catalogue().Lookup("", "v1", "pods"), "", p, "m", time.Now()); err != nil || b.asked != 2 {
		t.Errorf("objects of other types are affected: %v, asked %d times", err, b.asked)
	}
}

// TestImplementations: which implementation handles frequent writes.
func TestImplementations(t *testing.T) {
	for _, tc := range []struct {
		name     string
		standard bool
		prepare  func(old, obj kinds.Object)
		want     string
	}{
		{"usual", false, func(_, _ kinds.Object) {}, Planned},
		{"switched off", true, func(_, _ kinds.Object) {}, Standard},
		{"entries of another version", false, func(old, _ kinds.Object) {
			old.SetUID("1")
			old.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update", APIVersion: "v2", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{}`)}}})
		}, Standard},
		{"two entries of one manager", false, func(old, _ kinds.Object) {
			old.SetUID("1")
			e := metav1.ManagedFieldsEntry{Manager: "m", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{}`)}}
			old.SetManagedFields([]metav1.ManagedFieldsEntry{e, e})
		}, Standard},
		{"two entries of one manager among many", false, func(old, _ kinds.Object) {
			old.SetUID("1")
			var list []metav1.ManagedFieldsEntry
			for i := range 2 * fewEntries {
				list = append(list, metav1.ManagedFieldsEntry{Manager: fmt.Sprint(i % (2*fewEntries - 1)), Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{}`)}})
			}
			old.SetManagedFields(list)
		}, Standard},
		{"entries from a client", false, func(_, obj kinds.Object) {
			obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{}`)}}})
		}, Standard},
	} {
		var counted []string
		m := New(Config{
			Schemas: schema.New(kinds.NewCatalogue(builtin.Resources())), StandardOnly: tc.standard,
			Count: func(name string) { counted = append(counted, name) },
		})
		r := m.schemas.Catalogue().Lookup("", "v1", "configmaps")
		old, obj := r.New(), kinds.Object(configMap())
		tc.prepare(old, obj)
		if err := m.AfterUpdate(r, "", old, obj, "m", time.Now()); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if fmt.Sprint(counted) != "["+tc.want+"]" {
			t.Errorf("%s: %v, not %s", tc.name, counted, tc.want)
		}
	}
}
