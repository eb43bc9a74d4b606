// Package writes changes stored objects: create, update, patch, apply and delete, as
// values in and out, without HTTP.
//
//	request.go    who writes what, and with which permit; what became of it
//	create.go     a new object, from top to bottom
//	update.go     a change of an object, from top to bottom; it is repeated while other writes are faster
//	patch.go      patches and server-side apply, as changes
//	scale.go      a change of the number of replicas, seen as a Scale; scale_owner.go says who owns it
//	delete.go     a delete; grace.go decides how the object goes
//	part.go       for subresources that write in ways of their own: bindings, evictions
//	meta.go       what the server alone decides of metadata; package kinds checks the rest
//	match.go      an object against the path, the UID and the resource version that are asked for
//	ownership.go  who owns which field
//
// A write is computed on the live object, owned, admitted, compared with the resource
// version that was asked for, prepared and validated by its kind, and committed if the
// object is still the same; if another write was faster it is computed anew, until the
// context ends (docs/design/writes.md). Writers of one object that got into each other's way stand
// in line, and their users take turns.
//
// It promises: nothing is written but what the request's permit covers; an update that
// finds no object makes one only after the authorizer was asked for create; and a write
// without an error has been stored, unless it was a dry run. It starts no goroutine.
//
// Callers are the verbs, and subresources that write in ways of their own.
package writes

import (
	"context"
	"log/slog"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/contention"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/sqlstore"
)

// Writer runs writes. Its fields are set once, before the first of them.
type Writer struct {
	Objects    *objects.Store
	Owner      Owner            // nil: no field ownership is kept, and there is no apply
	Admission  Admission        // nil: everything is admitted
	Authorizer authx.Authorizer // of creates by update and of deletes unread; nil: nobody may
	Clock      func() time.Time // nil: time.Now
	Log        *slog.Logger     // nil: slog.Default
	// Apart is how long an object that is marked and then goes at once is there for watchers,
	// marked, before it goes.
	Apart time.Duration
	// NeverPast: a shorter grace period does not move the deletionTimestamp into the past.
	NeverPast bool
	// Changed is called with what an update has stored, by the storage of the object, before the
	// client gets its answer.
	Changed map[string]func(ctx context.Context, item *cache.Item)

	queues contention.Queues // of those whose write of an object lost to another's
}

// Owner keeps who owns which field; server/apply/ownership implements it. Objects are in
// r's version. sub is "" or the subresource that was written through.
type Owner interface {
	AfterCreate(r *kinds.Resource, sub string, obj kinds.Object, manager string, now time.Time) error
	AfterUpdate(r *kinds.Resource, sub string, old, obj kinds.Object, manager string, now time.Time) error
	// Apply merges patch into live, which is nil where there is none and is not changed. clean
	// says that nothing is repeated in the patch.
	Apply(r *kinds.Resource, sub string, live kinds.Object, patch []byte, manager string, force bool, now time.Time) (merged kinds.Object, clean bool, err error)
	// ApplyScale merges a patch of a Scale into that of live, and returns it with the
	// owners of live's fields.
	ApplyScale(r *kinds.Resource, sub string, live kinds.Object, patch []byte, manager string, force bool) (*autoscalingv1.Scale, []metav1.ManagedFieldsEntry, error)
}

// Admission lets writes in; admission.Chain implements it.
type Admission interface {
	// Admit may change the object; Validate only looks at what it has become.
	Admit(ctx context.Context, a *admission.Attributes) error
	Validate(ctx context.Context, a *admission.Attributes) error
}

func (w *Writer) admit(ctx context.Context, a *admission.Attributes) error {
	if w.Admission == nil {
		return nil
	}
	return w.Admission.Admit(ctx, a)
}

func (w *Writer) validate(ctx context.Context, a *admission.Attributes) error {
	if w.Admission == nil {
		return nil
	}
	return w.Admission.Validate(ctx, a)
}

// stageSteps are what preparing, validating and advising take of the steps of a write, each. What
// they do grows with the object alone, whose weight is bounded.
const stageSteps = 100

// goesOn says by its error that a write ends before its next stage: its client has left, its time
// is over, or it has taken all of its steps.
func goesOn(ctx context.Context) error { return kinds.Steps(ctx).Spend(ctx, stageSteps) }

// Now is the time by the writer's clock.
func (w *Writer) Now() time.Time {
	if w.Clock == nil {
		return time.Now()
	}
	return w.Clock()
}

func (w *Writer) log() *slog.Logger {
	if w.Log == nil {
		return slog.Default()
	}
	return w.Log
}

// Waiting counts who waits in the queue of a key.
func (w *Writer) Waiting(key sqlstore.Key) int { return w.queues.Waiting(key) }
