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

// Request is who writes what, and how. It is for one write, or for those that a request
// for a collection or an eviction consists of; writes do not change it.
type Request struct {
	Resource  *kinds.Resource
	Sub       *kinds.Subresource // nil for the object itself
	Namespace string             // of the path
	Name      string             // of the path; "" where the object has it

	Verb   string // as it was authorized
	Path   string // of the URL, for authorizers
	User   *authx.Identity
	Permit permits.Permit

	Manager string         // field manager
	Options runtime.Object // CreateOptions, UpdateOptions, PatchOptions or DeleteOptions, for admission
	DryRun  bool           // nothing is stored; deletes have it in their own options

	Warn     func(text string)       // tells the client
	Annotate func(key, value string) // adds to the audit event
	Recorded bool                    // the audit event holds what admission changes

	applies bool // a server-side apply, which is about who owns what
}

// Outcome is what became of a write.
type Outcome struct {
	// Item is what readers see, for a delete the last state, and for a dry run what they would
	// have seen, at the revision that the object has already. It is nil for an update that took
	// away the last finalizer, and for what was deleted unread.
	Item *cache.Item
	// Object is the object as writes work on it: in the stored version, or of a custom
	// resource in that of the request. It is nil for what was deleted unread.
	Object  kinds.Object
	Created bool // by a create, or by an update that found none
	// Gone says that the answer tells a client that the object is gone. Nothing kept it, or it is of
	// a kind that tells so though its grace period runs.
	Gone bool
}

// sub is the subresource that is written through, or "".
func (req *Request) sub() string {
	if req.Sub == nil {
		return ""
	}
	return req.Sub.Name
}

// place is where an object of the request's namespace is, seen as the request sees it.
func (req *Request) place(name string) objects.Place {
	p := objects.Place{Resource: req.Resource, Name: name, Sub: req.sub()}
	if req.Resource.Namespaced {
		p.Namespace = req.Namespace
	}
	return p
}

// key is the store key of a name in the request's namespace.
func (req *Request) key(name string) sqlstore.Key {
	p := req.place(name)
	return p.Key()
}

// strategy is that of the subresource that is written through, or of the object.
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
