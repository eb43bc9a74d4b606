package writes

import (
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
)

// recordOwner records the manager of a request as the owner of its changes; old is nil for a new object. If
// ownership cannot be computed, the object is stored without managed fields.
func (w *Writer) recordOwner(req *Request, obj, old kinds.Object) error {
	return inServed(req.Resource, obj, old, func(obj, old kinds.Object) (err error) {
		if old == nil {
			err = w.Owner.AfterCreate(req.Resource, "", obj, req.Manager, w.Clock())
		} else {
			err = w.Owner.AfterUpdate(req.Resource, req.sub(), old, obj, req.Manager, w.Clock())
		}
		w.orWithout(obj, err)
		return nil
	})
}

// Own records the sender of a body that is never stored, of a kind that r describes, as the owner of all its
// fields. If ownership cannot be computed, the body gets no managed fields.
func (w *Writer) Own(r *kinds.Resource, sub string, obj kinds.Object, manager string) {
	obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	w.orWithout(obj, w.Owner.AfterCreate(r, sub, obj, manager, w.Clock()))
}

// orWithout removes the managed fields of an object for which they could not be computed.
func (w *Writer) orWithout(obj kinds.Object, err error) {
	if err != nil {
		w.Log.Debug("an object has no managed fields", "error", err)
		obj.SetManagedFields(nil)
	}
}

// inServed calls fn with the objects in r's version, and copies the managed fields back.
func inServed(r *kinds.Resource, obj, old kinds.Object, fn func(obj, old kinds.Object) error) error {
	if !r.Converts() {
		return fn(obj, old)
	}
	v, err := r.ToServed(objects.Copy(obj))
	if err != nil {
		return err
	}
	var o kinds.Object
	if old != nil {
		if o, err = r.ToServed(objects.Copy(old)); err != nil {
			return err
		}
	}
	if err := fn(v, o); err != nil {
		return err
	}
	obj.SetManagedFields(v.GetManagedFields())
	return nil
}
