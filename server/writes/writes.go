// Package writes changes stored objects: create, update, patch, apply and delete, without HTTP.
//
//	request.go      the request and the outcome of a write
//	create.go       a new object, from top to bottom; orphan.go: its namespace or its
//	                definition was deleted meanwhile
//	update.go       a change of an object, from top to bottom; attempts.go repeats it after conflicts
//	                with other writes
//	patch.go        patches and server-side apply, as changes
//	scale.go        a change of the number of replicas through a Scale; scale_owner.go
//	                records who owns it
//	delete.go       a delete; grace.go decides how the object is deleted
//	subresource.go  for subresources with their own kinds of writes: bindings, evictions
//	meta.go         metadata that only the server sets; package kinds checks the rest
//	match.go        an object against the path, the UID and the resource version of the request
//	ownership.go    field owners
//	rights.go       rights that single fields require
//
// A write is computed from the live object, owned, admitted, compared with the resource version of the
// request, prepared and validated by its kind, and committed if the object has not changed. After a conflict
// it is computed again, until the context ends (docs/design/writes.md). Conflicting writers of one object
// queue, and their users take turns.
//
// Every write is covered by the request's permit; an update that finds no object creates one only if the
// authorizer allows a create; and a write without an error has been stored, unless it was a dry run. The
// package starts no goroutine.
//
// Callers are the verbs, and subresources with their own kinds of writes.
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

// Writer performs writes. Its fields are set once, before the first write.
type Writer struct {
	Objects    *objects.Store
	Owner      Owner
	Admission  *admission.Chain
	Authorizer authx.Authorizer // of creates by update and of deletes unread
	Clock      func() time.Time
	Log        *slog.Logger
	// Apart is the time for which watchers see an object marked for deletion that could be removed at once.
	Apart time.Duration
	// NeverPast keeps a shortened grace period from moving the deletionTimestamp into the past.
	NeverPast bool
	// AnyNamespace means that objects may be created in namespaces that do not exist.
	AnyNamespace bool
	// Changed is called with the result of an update, by the storage of the object, before the client gets
	// its answer.
	Changed map[string]func(ctx context.Context, item *cache.Item)

	queues contention.Queues // of writers after a conflict
}

// Owner records field owners; server/apply/ownership implements it. Objects are in r's version. sub is "" or
// the subresource.
type Owner interface {
	AfterCreate(r *kinds.Resource, sub string, obj kinds.Object, manager string, now time.Time) error
	AfterUpdate(r *kinds.Resource, sub string, old, obj kinds.Object, manager string, now time.Time) error
	// Apply merges patch into live, which is nil for a missing object and is not changed. clean means that the
	// patch has no duplicate keys.
	Apply(r *kinds.Resource, sub string, live kinds.Object, patch []byte, manager string, force bool, now time.Time) (merged kinds.Object, clean bool, err error)
	// ApplyScale merges a patch of a Scale into that of live, and returns it with the managed fields of live.
	ApplyScale(r *kinds.Resource, sub string, live kinds.Object, patch []byte, manager string, force bool) (*autoscalingv1.Scale, []metav1.ManagedFieldsEntry, error)
}

// stageSteps are the steps of a write's budget that preparing, validating and advising take, each. Their cost
// grows with the object only, whose weight is bounded.
const stageSteps = 100

// spendStage returns an error if a write must stop before its next stage: its client has left, its deadline has
// passed, or it has used all its steps.
func spendStage(ctx context.Context) error { return kinds.Steps(ctx).Spend(ctx, stageSteps) }

// Waiting counts the writers in the queue of a key.
func (w *Writer) Waiting(key sqlstore.Key) int { return w.queues.Waiting(key) }
