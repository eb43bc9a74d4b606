// Package ownership maintains metadata.managedFields, which records the managers that own each field of an
// object, and uses that record to merge server-side applies.
//
//	writes -> FieldManager.AfterCreate, AfterUpdate    updates the record after every other write
//	               |-> planned    fast path: plans of package fieldset, for frequent cases
//	               `-> standard   the library (managedfields of apimachinery), for every case
//	writes -> FieldManager.Apply
//	               |-> planned    an apply of just the fields that were applied before
//	               `-> standard   every other apply
//	writes -> FieldManager.ApplyScale                  always the library
//
// Both implement the interface tracker with the same results. The fast path comes first, unless
// Config disables it, and passes on what it does not support: custom objects, entries that other
// implementations wrote, lists with duplicate keys. If it panics, the library handles the
// write, and from then on all objects of that type. Config.Count counts which of the two was used.
//
// limits.go bounds the cost, since clients write whatever they like into objects and their
// managed fields. There are no goroutines. A FieldManager is safe for
// concurrent use; it makes its plans and the library's managers on first use,
// under locks that are never held while another lock is taken.
package ownership

import (
	"cmp"
	"errors"
	"log/slog"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/apply/ownership/fieldset"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/schema"
)

// The implementations that Config.Count reports.
const (
	Planned  = "planned"
	Standard = "standard"
	Failed   = "failed" // a panic in the fast path, after which the library handled the write
)

// Config configures a FieldManager.
type Config struct {
	Schemas *schema.Schemas

	// JSON reads applied configurations. Without one, the library handles all of them.
	JSON jsoncodec.Codec
	// StandardOnly leaves everything to the library.
	StandardOnly bool
	// Count is called for each write with the implementation: Planned, Standard or Failed. It may be nil.
	Count func(implementation string)
	// Log receives panics of the planned implementation. It may be nil.
	Log *slog.Logger
}

// FieldManager keeps metadata.managedFields and merges server-side applies.
type FieldManager struct {
	schemas  *schema.Schemas
	json     jsoncodec.Codec
	planned  tracker // nil: not in use
	standard *standard
	blank    sync.Map // reflect.Type -> an object of it without fields
	failed   sync.Map // reflect.Type of objects that made planned panic -> bool
	count    func(implementation string)
	log      *slog.Logger
}

// New makes a FieldManager for the kinds of the schemas' catalogue.
func New(cfg Config) *FieldManager {
	m := &FieldManager{schemas: cfg.Schemas, json: cfg.JSON, standard: &standard{schemas: cfg.Schemas}, count: cfg.Count, log: cfg.Log}
	if !cfg.StandardOnly {
		m.planned = &planned{schemas: cfg.Schemas}
	}
	if m.count == nil {
		m.count = func(string) {}
	}
	m.log = cmp.Or(m.log, slog.New(slog.DiscardHandler))
	return m
}

// tracker computes the managed fields of an object after a write, or returns fieldset.ErrUnsupported.
type tracker interface {
	// track is for writes that are no applies.
	track(write) ([]metav1.ManagedFieldsEntry, error)
	// reapply is for applies, and returns the merged object.
	reapply(application) (kinds.Object, error)
}

// write describes a write. The objects are of the resource's version and are not changed, except that their
// kind may be set.
type write struct {
	resource    *kinds.Resource
	subresource string
	old, new    kinds.Object
	created     bool                        // old has no fields, and is shared
	entries     []metav1.ManagedFieldsEntry // the record to begin with
	// fromOld means that entries are those of old. Otherwise a client sent them.
	fromOld bool
	manager string
	now     time.Time
}

// AfterCreate sets the managed fields of an object that is about to be created:
// manager owns all of its fields. Valid entries that the client sent are kept. sub is "" or the subresource of the
// request.
func (m *FieldManager) AfterCreate(r *kinds.Resource, sub string, obj kinds.Object, manager string, now time.Time) error {
	w := write{resource: r, subresource: sub, old: m.nothing(r, obj), new: obj, created: true, manager: manager, now: now}
	return m.after(w)
}

// nothing returns an object of r without fields, which serves many comparisons and must not be changed.
func (m *FieldManager) nothing(r *kinds.Resource, obj kinds.Object) kinds.Object {
	if m.planned == nil || !r.HasGoType() {
		return r.New()
	}
	t := reflect.TypeOf(obj)
	if known, ok := m.blank.Load(t); ok {
		return known.(kinds.Object)
	}
	made := r.New()
	if reflect.TypeOf(made) == t && reflect.ValueOf(made).Elem().IsZero() {
		m.blank.Store(t, made)
	}
	return made
}

// AfterUpdate sets the managed fields of obj, which is about to replace old: manager owns the changed fields,
// and others lose them. A write without changes changes no entry. Entries in obj that differ from those of
// old are the client's wish: one empty entry clears the record, an empty list or none leaves it as it is.
//
// Both objects are of r's version. old is not changed, but may be encoded. The error concerns values for
// which ownership cannot be computed; obj then has no managed fields and may be stored like that.
func (m *FieldManager) AfterUpdate(r *kinds.Resource, sub string, old, obj kinds.Object, manager string, now time.Time) error {
	return m.after(write{resource: r, subresource: sub, old: old, new: obj, manager: manager, now: now})
}

// after is AfterUpdate.
func (m *FieldManager) after(w write) error {
	w.manager = cmp.Or(w.manager, "unknown")
	obj := w.new
	w.entries, w.fromOld = recordFor(w.subresource, w.old, obj)
	if len(w.entries) == 0 && w.old.GetUID() != "" {
		// This object has no ownership record; the next apply starts one.
		obj.SetManagedFields(nil)
		return nil
	}
	entries, err := m.track(w)
	obj.SetManagedFields(entries)
	return err
}

// recordFor returns the record before a write, and whether it is that of old.
func recordFor(sub string, old, obj kinds.Object) (entries []metav1.ManagedFieldsEntry, fromOld bool) {
	sent := obj.GetManagedFields()
	switch {
	case sub != "" || len(sent) == 0 || sameEntries(sent, old.GetManagedFields()):
		return old.GetManagedFields(), true
	case isReset(sent):
		return nil, true
	}
	return sent, false
}

// track calls the fast path or the library.
func (m *FieldManager) track(w write) ([]metav1.ManagedFieldsEntry, error) {
	if s := w.resource.Sub(w.subresource); s != nil && s.Scale != nil {
		m.count(Standard)
		return m.trackScale(w.alone(), s.Scale)
	}
	if m.planned != nil && w.fromOld {
		entries, err := m.tryPlanned(w)
		if !errors.Is(err, fieldset.ErrUnsupported) {
			m.count(Planned)
			return entries, err
		}
	}
	m.count(Standard)
	return m.standard.track(w.alone())
}

// alone returns a write with copies of the objects.
func (w write) alone() write {
	if w.created {
		w.old = w.resource.New()
	}
	return w
}

// tryPlanned tries the fast path.
func (m *FieldManager) tryPlanned(w write) (entries []metav1.ManagedFieldsEntry, err error) {
	err = m.quickly(w.resource, w.new, func() error {
		entries, err = m.planned.track(w)
		return err
	})
	return entries, err
}

// quickly calls fn, which uses the fast path for an object of obj's type, and converts a panic to ErrUnsupported, for all
// objects of the type from then on.
func (m *FieldManager) quickly(r *kinds.Resource, obj kinds.Object, fn func() error) (err error) {
	t := reflect.TypeOf(obj)
	if _, failed := m.failed.Load(t); failed {
		return fieldset.ErrUnsupported
	}
	defer func() {
		if reason := recover(); reason != nil {
			err = fieldset.ErrUnsupported
			m.failed.Store(t, true)
			m.count(Failed)
			m.log.Error("the planned implementation of field ownership panicked; from now on the standard one handles objects of this kind",
				"kind", r.GVK().String(), "error", reason, "stack", string(debug.Stack()))
		}
	}()
	return fn()
}
