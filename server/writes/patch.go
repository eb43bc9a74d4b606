package writes

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/server/apply/ownership"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/status"
)

// Patch changes an existing object with a JSON, merge or strategic merge patch.
func (w *Writer) Patch(ctx context.Context, req *Request, p *apply.Patch) (*Outcome, error) {
	r := req.Resource
	return w.Update(ctx, req, &Change{Compute: func(old kinds.Object, item *cache.Item) (kinds.Object, error) {
		// The patch applies to the object in the version of the request.
		current, encoded := old, item.JSON()
		if !objects.Clean(r, item) {
			var err error
			if current, err = r.ToServed(objects.Copy(old)); err != nil {
				return nil, err
			}
			if encoded, err = w.Objects.Codec().Append(nil, current); err != nil {
				return nil, err
			}
		}
		patched, problems, err := p.Change(ctx, r.GVK(), current, encoded)
		if err != nil {
			return nil, status.Show(err)
		}
		warn(req, problems)
		obj, ok := patched.(kinds.Object)
		if !ok {
			return nil, apierrors.NewBadRequest("the patch makes it no object any more")
		}
		if err := matchPath(req, obj); err != nil {
			return nil, err
		}
		return Incoming(r, obj)
	}})
}

// Applied is the body of a server-side apply.
type Applied struct {
	Body       []byte // JSON or YAML
	Force      bool   // takes fields that others own
	Strictness codecs.Strictness
}

// Apply merges a manager's configuration into an object, or creates it.
func (w *Writer) Apply(ctx context.Context, req *Request, a *Applied) (*Outcome, error) {
	as := *req
	as.applies = true
	return w.Update(ctx, &as, &Change{
		MayCreate: req.Sub == nil && slices.Contains(req.Resource.Verbs, "create"),
		Compute:   func(old kinds.Object, _ *cache.Item) (kinds.Object, error) { return w.merge(&as, a, old) },
		own:       func(obj, old kinds.Object) error { return nil }, // the merge has recorded it
	})
}

// merge returns the object after an apply, in the stored version.
func (w *Writer) merge(req *Request, a *Applied, old kinds.Object) (kinds.Object, error) {
	r := req.Resource
	live := old
	if old != nil && r.Converts() {
		var err error
		if live, err = r.ToServed(objects.Copy(old)); err != nil {
			return nil, err
		}
	}
	obj, clean, err := w.Owner.Apply(r, req.sub(), live, a.Body, req.Manager, a.Force, w.Clock())
	if err != nil {
		return nil, status.Show(err)
	}
	if !clean {
		problems, err := ownership.RepeatedFields(w.Objects.Codec(), a.Body, a.Strictness)
		if err != nil {
			return nil, err
		}
		warn(req, problems)
	}
	if uid := obj.GetUID(); uid != "" && old == nil {
		return nil, apierrors.NewConflict(r.GroupResource(), req.Name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	if err := matchPath(req, obj); err != nil {
		return nil, err
	}
	// The merge has already refused unknown fields.
	if err := r.CoerceMerged(obj); err != nil {
		return nil, status.Show(err)
	}
	return Incoming(r, obj)
}

// warn sends problems of decoding to the client as warnings.
func warn(req *Request, problems []string) {
	for _, text := range codecs.Warnings(problems) {
		req.Warn(text)
	}
}
