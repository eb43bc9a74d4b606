package kinds

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Typed is a Strategy for a Go type: its functions get objects of type T, and fields declare the common parts
// of most kinds. Strategy makes the untyped form. Nil functions do nothing; the fields that Strategy has too
// mean the same there.
type Typed[T Object] struct {
	ValidateName func(name string, prefix bool) []string
	NameIsBase   bool
	Meta         *MetaRules

	// Status is the strategy of a status subresource. With it, writes of the object keep the status and
	// writes of the status keep the spec, and neither owns the kept part.
	Status *Status[T]

	Default func(T)
	// Keep copies the other fields that clients may not change from old. For a new object old is an empty
	// one, so that these fields may not be set either.
	Keep func(obj, old T)
	// PrepareForCreate and PrepareForUpdate do the rest of the changes
	// before validation. They come after Keep.
	PrepareForCreate func(T)
	PrepareForUpdate func(obj, old T)
	// PrepareForCreateIn takes the place of PrepareForCreate where the requesting user matters.
	PrepareForCreateIn func(ctx context.Context, obj T)
	// Counted are the parts of an object that its generation counts changes of. It comes
	// last. Nil: the generation is as the others leave it.
	Counted func(T) []any

	Validate       func(T) field.ErrorList
	ValidateUpdate func(obj, old T) field.ErrorList
	// ValidateIn and ValidateUpdateIn take the place of the two where the context matters:
	// it holds the requested resource (see Requested), and may end.
	ValidateIn       func(ctx context.Context, obj T) field.ErrorList
	ValidateUpdateIn func(ctx context.Context, obj, old T) field.ErrorList
	Canonicalize     func(T)
	Warnings         func(obj, old T) []string // old is nil for a new object

	CreateOnUpdate        bool
	UnconditionalUpdate   bool
	ReturnDeletedObject   bool
	OrphanByDefault       bool
	OrphanWarning         string
	ForbidFinalizeOrphans bool
	DeleteAlso            string
	Undeletable           func(name string) string
	ResetFields           []string

	Graceful                    func(obj T, opts *metav1.DeleteOptions) (seconds int64, graceful bool)
	Terminate                   func(obj T, now time.Time)
	TerminateRecordsPropagation bool
	Held                        func(T) bool
	Allocate                    Allocator
	ClaimsIn                    string
}

// Status is the part of the strategy of a status that does not follow from that of its kind.
type Status[T Object] struct {
	// ByCreate and ByUpdate let clients write the status by creating and by updating the object, too. Then
	// updates of the object may own the status, and writes of the status may own the spec.
	ByCreate, ByUpdate bool

	Meta *MetaRules
	// KeepsMetadata means that writes of the status leave the metadata as it is.
	KeepsMetadata bool
	// Prepare makes further changes before validation; the spec is that of old.
	Prepare      func(obj, old T)
	Validate     func(obj, old T) field.ErrorList
	Canonicalize func(T)
	Warnings     func(obj, old T) []string
	ResetFields  []string // in addition to the spec
	Rights       func(obj, old T, verb, node string) []Right
}

// strategy returns the rules for the subresource.
func (s *Status[T]) strategy(unconditional bool) *Strategy {
	keepSpec := keepField[T]("Spec")
	t := Typed[T]{
		Meta: s.Meta, PrepareForUpdate: s.Prepare, ValidateUpdate: s.Validate, Canonicalize: s.Canonicalize, Warnings: s.Warnings, UnconditionalUpdate: unconditional,
		Keep: func(obj, old T) {
			keepSpec(obj, old)
			if s.KeepsMetadata {
				keepMetadata(obj, old)
			}
		},
	}
	if !s.ByUpdate {
		t.ResetFields = append([]string{"spec"}, s.ResetFields...)
	}
	return new(t.Strategy())
}

// keepField copies a field of the struct that T points to from old to obj.
func keepField[T Object](name string) func(obj, old T) {
	field, known := reflect.TypeFor[T]().Elem().FieldByName(name)
	if !known {
		panic(fmt.Sprintf("%v has no field %s", reflect.TypeFor[T](), name))
	}
	return func(obj, old T) {
		reflect.ValueOf(obj).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(old).Elem().FieldByIndex(field.Index))
	}
}

// keepMetadata copies all metadata but the record of owners from old to obj.
func keepMetadata(obj, old Object) {
	meta := func(o Object) *metav1.ObjectMeta {
		return o.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
	}
	managed := obj.GetManagedFields()
	meta(old).DeepCopyInto(meta(obj))
	obj.SetManagedFields(managed)
}

// keepStatus copies the status of a kind that a subresource writes; nil for others.
func (t Typed[T]) keepStatus() func(obj, old T) {
	if t.Status == nil || t.Status.ByUpdate {
		return nil
	}
	return keepField[T]("Status")
}

// Strategy returns the untyped form. Its functions panic for objects of other types: a row
// of the table of kinds gives them none.
func (t Typed[T]) Strategy() Strategy {
	s := Strategy{
		ValidateName: t.ValidateName, NameIsBase: t.NameIsBase, Meta: t.Meta,
		PrepareForCreate: t.forCreate(), PrepareForUpdate: t.forUpdate(),
		CreateOnUpdate: t.CreateOnUpdate, UnconditionalUpdate: t.UnconditionalUpdate, ReturnDeletedObject: t.ReturnDeletedObject,
		OrphanByDefault: t.OrphanByDefault, OrphanWarning: t.OrphanWarning, ForbidFinalizeOrphans: t.ForbidFinalizeOrphans,
		DeleteAlso: t.DeleteAlso, Undeletable: t.Undeletable, ResetFields: t.ResetFields,
		TerminateRecordsPropagation: t.TerminateRecordsPropagation, Allocate: t.Allocate, ClaimsIn: t.ClaimsIn,
	}
	if t.Status != nil {
		s.Status = t.Status.strategy(t.UnconditionalUpdate)
		if f := t.Status.Rights; f != nil {
			s.Status.Rights = func(obj, old Object, verb, node string) []Right { return f(obj.(T), old.(T), verb, node) }
		}
		if !t.Status.ByUpdate {
			s.ResetFields = append([]string{"status"}, t.ResetFields...)
		}
	}
	if f := t.Default; f != nil {
		s.Default = func(obj Object) { f(obj.(T)) }
	}
	if f := t.Validate; f != nil {
		s.Validate = func(_ context.Context, obj Object) field.ErrorList { return f(obj.(T)) }
	}
	if f := t.ValidateUpdate; f != nil {
		s.ValidateUpdate = func(_ context.Context, obj, old Object) field.ErrorList { return f(obj.(T), old.(T)) }
	}
	if f := t.ValidateIn; f != nil {
		s.Validate = func(ctx context.Context, obj Object) field.ErrorList { return f(ctx, obj.(T)) }
	}
	if f := t.ValidateUpdateIn; f != nil {
		s.ValidateUpdate = func(ctx context.Context, obj, old Object) field.ErrorList { return f(ctx, obj.(T), old.(T)) }
	}
	if f := t.Canonicalize; f != nil {
		s.Canonicalize = func(obj Object) { f(obj.(T)) }
	}
	if f := t.Warnings; f != nil {
		s.Warnings = func(_ context.Context, obj, old Object) []string {
			before, _ := old.(T)
			return f(obj.(T), before)
		}
	}
	if f := t.Graceful; f != nil {
		s.Graceful = func(_ context.Context, obj Object, opts *metav1.DeleteOptions) (int64, bool) { return f(obj.(T), opts) }
	}
	if f := t.Terminate; f != nil {
		s.Terminate = func(obj Object, now time.Time) { f(obj.(T), now) }
	}
	if f := t.Held; f != nil {
		s.Held = func(obj Object) bool { return f(obj.(T)) }
	}
	return s
}

func (t Typed[T]) forCreate() func(context.Context, Object) {
	keepStatus := t.keepStatus()
	if keepStatus == nil && t.Keep == nil && t.PrepareForCreate == nil && t.PrepareForCreateIn == nil && t.Counted == nil {
		return nil
	}
	empty := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	return func(ctx context.Context, o Object) {
		obj := o.(T)
		if keepStatus != nil && !t.Status.ByCreate {
			keepStatus(obj, empty)
		}
		if t.Keep != nil {
			t.Keep(obj, empty)
		}
		if t.PrepareForCreate != nil {
			t.PrepareForCreate(obj)
		}
		if t.PrepareForCreateIn != nil {
			t.PrepareForCreateIn(ctx, obj)
		}
		if t.Counted != nil {
			obj.SetGeneration(1)
		}
	}
}

func (t Typed[T]) forUpdate() func(context.Context, Object, Object) {
	keepStatus := t.keepStatus()
	if keepStatus == nil && t.Keep == nil && t.PrepareForUpdate == nil && t.Counted == nil {
		return nil
	}
	return func(_ context.Context, o, before Object) {
		obj, old := o.(T), before.(T)
		if keepStatus != nil {
			keepStatus(obj, old)
		}
		if t.Keep != nil {
			t.Keep(obj, old)
		}
		if t.PrepareForUpdate != nil {
			t.PrepareForUpdate(obj, old)
		}
		if t.Counted == nil {
			return
		}
		obj.SetGeneration(old.GetGeneration())
		if !equality.Semantic.DeepEqual(t.Counted(obj), t.Counted(old)) {
			obj.SetGeneration(old.GetGeneration() + 1)
		}
	}
}

// TypedScale is a ScaleMapping for a Go type, for kinds that have their
// number in spec.replicas.
type TypedScale[T Object] struct {
	Wanted   func(T) **int32 // spec.replicas
	Current  func(T) int32   // status.replicas
	Selector func(T) string
	// NamesParent is ScaleMapping.NamesParent.
	NamesParent bool
}

// Mapping returns the untyped form.
func (t TypedScale[T]) Mapping() *ScaleMapping {
	return &ScaleMapping{
		Replicas: func(obj Object) (spec, status int32) {
			if n := *t.Wanted(obj.(T)); n != nil {
				spec = *n
			}
			return spec, t.Current(obj.(T))
		},
		SetReplicas:  func(obj Object, n int32) { *t.Wanted(obj.(T)) = &n },
		Selector:     func(obj Object) string { return t.Selector(obj.(T)) },
		ReplicasPath: []string{"spec", "replicas"},
		NamesParent:  t.NamesParent,
	}
}
