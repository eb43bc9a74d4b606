package writes

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/sqlstore"
)

// Request describes a write: its user, its object and its options. It is for one write, or for the writes of
// one request for a collection or an eviction; writes do not change it.
type Request struct {
	Resource  *kinds.Resource
	Sub       *kinds.Subresource // nil for the object itself
	Namespace string             // of the path
	Name      string             // of the path; "" if only the object has it

	Verb   string // as it was authorized
	Path   string // of the URL, for authorizers
	User   *authx.Identity
	Permit permits.Permit

	Manager string         // field manager
	Options runtime.Object // CreateOptions, UpdateOptions, PatchOptions or DeleteOptions, for admission
	DryRun  bool           // nothing is stored; deletes have it in their own options

	Warn     func(text string)       // sends a warning to the client
	Annotate func(key, value string) // adds to the audit event
	Recorded bool                    // the audit event records changes by admission

	applies bool // a server-side apply, which sets field owners itself
}

// Outcome is the result of a write.
type Outcome struct {
	// Item is the stored state; for a delete the last one, and for a dry run the one that would have been
	// stored, at the present revision of the object. It is nil for an update that removed the last finalizer,
	// and for an object that was deleted unread.
	Item *cache.Item
	// Object is the decoded object: in the stored version, or for a custom resource in that of the request.
	// It is nil for an object that was deleted unread.
	Object  kinds.Object
	Created bool // by a create, or by an update that found none
	// Gone reports whether the answer states that the object is gone: it was removed, or its kind
	// answers so during the grace period.
	Gone bool
}

// sub returns the name of the subresource, or "".
func (req *Request) sub() string {
	if req.Sub == nil {
		return ""
	}
	return req.Sub.Name
}

// place returns the place of an object in the request's namespace, with the request's subresource.
func (req *Request) place(name string) objects.Place {
	p := objects.Place{Resource: req.Resource, Name: name, Sub: req.sub()}
	if req.Resource.Namespaced {
		p.Namespace = req.Namespace
	}
	return p
}

// key returns the store key of a name in the request's namespace.
func (req *Request) key(name string) sqlstore.Key {
	p := req.place(name)
	return p.Key()
}

// strategy returns the rules for the subresource or the object.
func (req *Request) strategy() *kinds.Strategy {
	if req.Sub != nil && req.Sub.Update != nil {
		return req.Sub.Update
	}
	return &req.Resource.Storage.Strategy
}

// attributes describe the write to admission.
func (req *Request) attributes(op admission.Operation, obj, old runtime.Object) *admission.Attributes {
	return &admission.Attributes{
		Operation: op, Resource: req.Resource, Subresource: req.sub(),
		Namespace: req.Resource.NamespaceOf(req.Namespace, req.Name), Name: req.Name,
		Object: obj, Old: old, Options: req.Options, DryRun: req.DryRun, User: req.User,
		Warn: req.Warn, Annotate: req.Annotate, Recorded: req.Recorded,
	}
}
