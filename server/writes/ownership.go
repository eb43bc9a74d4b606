package writes

import (
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
)

// ownCreated records the manager of a new object.
func (w *Writer) ownCreated(req *Request, obj kinds.Object) error {
	if w.Owner == nil {
		obj.SetManagedFields(nil)
		return nil
	}
	return inServed(req.Resource, obj, nil, func(obj, _ kinds.Object) error {
		return w.unowned(obj, w.Owner.AfterCreate(req.Resource, "", obj, req.Manager, w.Now()))
	})
}

// ownUpdated records what an update changed for its manager.
func (w *Writer) ownUpdated(req *Request, obj, old kinds.Object) error {
	if w.Owner == nil {
		obj.SetManagedFields(nil)
		return nil
	}
	return inServed(req.Resource, obj, old, func(obj, old kinds.Object) error {
		return w.unowned(obj, w.Owner.AfterUpdate(req.Resource, req.sub(), old, obj, req.Manager, w.Now()))
	})
}

// Own records the sender of a body that is never stored, of a kind that r describes,
// as the owner of all that stands in it.
func (w *Writer) Own(r *kinds.Resource, sub string, obj kinds.Object, manager string) error {
	if w.Owner == nil {
		obj.SetManagedFields(nil)
		return nil
	}
	obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	return w.Owner.AfterCreate(r, sub, obj, manager, w.Now())
}

// unowned lets an object pass whose owners cannot be told: it is stored without any.
func (w *Writer) unowned(obj kinds.Object, err error) error {
	if err != nil {
		w.log().Debug("an object is stored without managed fields", "error", err)
		obj.SetManagedFields(nil)
	}
	return nil
}

// inServed calls fn with the objects in r's version, and brings the managed fields back.
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
