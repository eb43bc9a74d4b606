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

// Request is who writes what, and how. Requests are for one write; a collection is
// deleted with one for all its objects.
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
	DryRun  bool

	Warn     func(text string)       // tells the client
	Annotate func(key, value string) // adds to the audit event
	Recorded bool                    // the audit event holds what admission changes

	applies bool // a server-side apply, which is about who owns what
}

// Outcome is what became of a write.
type Outcome struct {
	Item    *cache.Item  // what readers see, for a delete the last state; nil for a dry run
	Object  kinds.Object // what was stored, or would have been; nil if it could not be read
	Created bool         // an update made the object
	Gone    bool         // a delete that does not wait for a grace period or finalizers
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
	a := &admission.Attributes{
		Operation: op, Resource: req.Resource, Subresource: req.sub(),
		Namespace: req.Resource.NamespaceOf(req.Namespace, req.Name), Name: req.Name,
		Object: obj, Old: old, Options: req.Options, DryRun: req.DryRun, User: req.User,
		Warn: req.Warn, Annotate: req.Annotate, Recorded: req.Recorded,
	}
	return a
}
