// Package kinds is the catalogue of resources: names, scope, versions,
// subresources, columns, and how each is defaulted, prepared and validated.
//
// A kind is a value, not a framework. Built-in kinds use the Go types of
// k8s.io/api, one file per API group; custom resources join at run time with
// unstructured objects. Callers never ask which of the two they hold.
package kinds

import (
	"context"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/release"
)

// Object is any stored object: a typed one of k8s.io/api or an *unstructured.Unstructured.
type Object interface {
	runtime.Object
	metav1.Object
}

// Resource is one resource as one group version serves it. Values are
// immutable once they are in a Catalogue.
type Resource struct {
	Group      string // "" for core
	Version    string
	Plural     string // "pods"
	Singular   string
	Kind       string
	ListKind   string
	ShortNames []string
	Categories []string
	Namespaced bool
	Release    release.Version // whose answers are given
	Verbs      []string        // in the order in which discovery names them
	// OfOne marks a list of one object's parts, which requires a selector. Discovery omits the verb: a client
	// that lists everything sends no selector.
	OfOne bool

	New     func() Object         // nil for virtual resources whose body is not an Object
	NewList func() runtime.Object // typed list; used by schema, protobuf and tests, not by the read path

	// Storage is shared by all versions of a resource and by resources that are
	// one storage under two names (events). Nil for virtual resources.
	Storage *Storage
	// ToStorage and FromStorage convert between this version and the stored one.
	// Nil where they are the same. They may reuse the argument.
	ToStorage   func(Object) (Object, error)
	FromStorage func(Object) (Object, error)

	// Default sets this version's own defaults, in an object of the stored version. Nil if the defaults are
	// those of Storage.
	Default func(Object)

	// FieldLabels are this version's field selector labels, and their names in Storage.Fields. Nil if they
	// are the same.
	FieldLabels map[string]string
	// FieldRefusal is the format of the error for an unknown label, if this version has a text of its own for
	// it; %q is the label.
	FieldRefusal string

	Subresources []Subresource
	Columns      Columns
	// Zero adds the values that an empty object of this version has in addition to those of its Go type:
	// numbers of the stored form that are optional here.
	Zero func(Object)

	Deprecation *Deprecation // nil: the version is not deprecated

	// Schema processes the objects of a version of a custom resource on their way from clients and from the
	// store. Nil for built-in kinds, which have a Go type.
	Schema Schema
	// Ending means that the definition of a custom resource is being deleted: nothing new
	// is made any more.
	Ending bool
	// Reserved means that a resource with a Schema comes from no definition but with the server.
	// No definition can take its place or join its version, and its group comes last.
	Reserved bool

	// Gate is the feature gate without which clients do not see the resource, whatever --runtime-config is;
	// "" for most.
	Gate string
	// Off means that clients do not see the resource. Its objects stay, and the server
	// itself reads and writes them.
	Off bool
}

// Storage is one stored collection.
type Storage struct {
	Key string // the resource column of the table: "pods", "deployments.apps"
	GVK schema.GroupVersionKind
	// HashedVersion is the version of discovery's storage hash, if it is not that of GVK.
	HashedVersion string
	Fields        []SelectableField // in addition to metadata.name and metadata.namespace
	Indexed       []string          // labels of Fields that the cache indexes, "spec.nodeName"
	TTL           func(Object) time.Duration
	// FieldAnnotation is an annotation that represents a field in a stock server's memory: metadata-only
	// answers omit it. "" for most.
	FieldAnnotation string
	// New makes an empty object of the stored version; nil if that is the same as the New of each Resource.
	New func() Object
	// Registry is the name of the collection in a stock server's messages, if it is not its plural name.
	Registry string
	// CostlyFrom is the number of bytes from which a body takes so much work to check that such requests
	// take turns, however little it weighs; 0: none is.
	CostlyFrom int
	// Uncached means that a stock server reads the collection from etcd alone, which calls a
	// malformed resourceVersion the client's mistake, and not from a cache, which fails.
	Uncached bool
	// KeepEmpty means that empty lists and maps are stored as they are; see DropEmpty.
	KeepEmpty bool
	Strategy
}

// SelectableField is one field selector label. Path leads to the value in the
// encoded object ("spec", "nodeName"); a missing or empty value reads as Default.
// Func, where set, computes the value from the encoded object instead.
type SelectableField struct {
	Label   string
	Path    []string
	Default string
	Func    func(encoded []byte) string
}

// Strategy defines how objects of a storage behave on their way in. Nil functions
// do nothing. Functions get objects in the stored version and must not keep them.
// Name, namespace, UID, timestamps, finalizers, managedFields and the validation of
// metadata are no matter of strategies: server/writes handles them for all kinds.
type Strategy struct {
	ValidateName func(name string, prefix bool) []string
	// NameIsBase means that an object without a name gets its generateName as the name, with no
	// random suffix.
	NameIsBase bool
	Meta       *MetaRules // how metadata is checked; nil: UsualMeta

	Default          func(obj Object)
	PrepareForCreate func(ctx context.Context, obj Object)
	PrepareForUpdate func(ctx context.Context, obj, old Object) // also counts generation
	Validate         func(ctx context.Context, obj Object) field.ErrorList
	ValidateUpdate   func(ctx context.Context, obj, old Object) field.ErrorList
	Canonicalize     func(obj Object)
	// Complete fills in a new object just before it is stored, after admission and
	// validation, and not for a dry run.
	Complete func(obj Object)
	Warnings func(ctx context.Context, obj, old Object) []string // old is nil on create

	// NeedsLabel names the field of an object, not in old, that objects may have only in namespaces with a label, with
	// the value "true", and the reason; nil: none. old is nil on create.
	NeedsLabel func(obj, old Object) (p *field.Path, label, detail string)

	CreateOnUpdate        bool // PUT creates an absent object
	UnconditionalUpdate   bool // PUT without a resourceVersion is allowed
	ReturnDeletedObject   bool // DELETE answers the object, not a Status
	OrphanByDefault       bool // propagation where the client names none
	OrphanWarning         string
	ForbidFinalizeOrphans bool // the garbage collector never handles this kind (events)

	// Graceful decides a delete's grace period: zero deletes at once. Nil: at once.
	// It may change opts.
	Graceful func(ctx context.Context, obj Object, opts *metav1.DeleteOptions) (seconds int64, graceful bool)

	// Terminate marks an object that is deleted for the first time: it stays until its
	// finalizers are gone. Nil for kinds that need no such mark.
	Terminate func(obj Object, now time.Time)
	// TerminateRecordsPropagation means that the mark also records the requested propagation
	// policy, as finalizers.
	TerminateRecordsPropagation bool
	// Held reports whether something other than its finalizers keeps a terminating object, which is deleted
	// only after that. Nil: it is deleted when it has no finalizers and no grace period is left.
	Held func(obj Object) bool

	// DeleteAlso is the key of a storage whose object of the same namespace and name is deleted with this one
	// ("endpoints", for services); it may be absent.
	DeleteAlso string

	// Undeletable returns why the object of a name can never be deleted, "" for one that can. Nil for most
	// kinds.
	Undeletable func(name string) string

	// Rights are the rights that the user of an update needs in addition to the verb: verb is that of the
	// request, and node the one to which the token of a service account is bound, "" for none. Nil for most
	// kinds.
	Rights func(obj, old Object, verb, node string) []Right

	// Status is the strategy of a status subresource; nil if there is none. Typed derives it from the kind.
	Status *Strategy

	// ResetFields are the field paths ("status") that a write through this
	// endpoint cannot own.
	ResetFields []string

	// Allocate reserves values that must be unique in the cluster (service addresses, node ports). Nil for
	// most kinds.
	Allocate Allocator
	// ClaimsIn is the key of a storage whose objects are claims too ("ipaddresses" of
	// services), which Allocate takes and gives back as the pool of that name; "" for none.
	ClaimsIn string
}

// Right is a right that a change needs, to a resource or a subresource that only authorizers know.
type Right struct {
	Field       *field.Path
	Detail      func(user string) string // of the error where the user has not the right
	Brief       bool                     // the error does not contain the authorizer's answer
	Last        bool                     // it is checked only if there is no other error
	Verbs       []string                 // one of them is enough
	Resource    string                   // of the group, in all versions; "" for that of the change
	Subresource string
	Namespace   string   // "" for all
	Names       []string // one of them is enough; none: all
}

// Allocator makes the extra writes that commit together with an object.
type Allocator interface {
	// Plan sets the allocations that obj requests (old is nil for create, obj for delete) and returns the
	// claims to take and to release. Writes call it after mutating admission and before PrepareForCreate or
	// PrepareForUpdate; its errors are API statuses. If a claim is taken by another write, the write calls
	// Plan again, with an object as it was before the first call. With dryRun the claims are returned as
	// well, and dropped.
	Plan(ctx context.Context, obj, old Object, claims Claims, dryRun bool) (take, release []Claim, err error)
}

// Claim is one unique value: Pool "serviceips", Name "10.96.0.10". Claims are rows of the store next to the
// objects, invisible to the API, except for those of the storage that Strategy.ClaimsIn names.
type Claim struct {
	Pool, Name string
	Owner      string // "namespace/name" of the object
	Object     Object // of the storage that Pool names; nil for an invisible claim, and to give back
}

// ClaimValue returns the value of a claim's row.
func ClaimValue(owner string) []byte { return fmt.Appendf(nil, "{\"owner\":%q}", owner) }

// Claims shows an Allocator the existing claims.
type Claims interface {
	Taken(pool, name string) bool
	// Removed is another number whenever something of a pool may have been given back.
	Removed(pool string) int64
	// Changed is another number whenever a storage has changed.
	Changed(storage string) int64
	// Each shows the objects of a storage as they are encoded, in order of their names.
	Each(storage string, fn func(name string, revision int64, encoded []byte))
}

// Subresource is one path below an object.
type Subresource struct {
	Name    string // "status", "scale", "binding", "log"
	Group   string // of the body's kind, where it differs from the resource's
	Version string
	Kind    string // "Deployment" for status, "Scale", "Eviction"
	Verbs   []string

	// Update makes the subresource write the parent (status, ephemeralcontainers, resize, approval,
	// finalize). Its PrepareForUpdate copies the fields that the endpoint may not change from old.
	Update *Strategy
	// NoTable means that the parent is not answered as a Table here.
	NoTable bool
	// Scale maps autoscaling/v1 Scale to the parent.
	Scale *ScaleMapping
	// Everything else (binding, eviction, token, log, exec, proxy ...) is a handler that
	// server/verbs knows by "resource/subresource".
}

// NoReplicas is the number of replicas in the Scale of a custom object that has none.
const NoReplicas = math.MinInt32

// ScaleMapping reads and writes replicas.
type ScaleMapping struct {
	// Check returns why an object has no scale; nil: every object has one.
	Check       func(Object) error
	Replicas    func(Object) (spec, status int32)
	SetReplicas func(Object, int32)
	Selector    func(Object) string
	// AnyNumber leaves the check of the number to the kind's own rules; otherwise it must not be negative.
	AnyNumber    bool
	ReplicasPath []string // "spec", "replicas": for field ownership
	// NamesParent means that a read of the scale of an absent object names the object, whatever the release.
	NamesParent bool
}

// Columns describe the Table form.
type Columns struct {
	Definitions []metav1.TableColumnDefinition
	// Cells returns one value a column, for an object in the stored version. now resolves ages; a zero now
	// leaves marks in their place (columns.Since), for cached cells.
	Cells func(obj Object, now time.Time) []any
	// Conditions returns those of the row ("Completed"); nil for most kinds.
	Conditions func(obj Object) []metav1.TableRowCondition
	// Repeated means that every event of a watch defines the columns, and not the
	// first alone.
	Repeated bool
	// Order compares two objects of a list, whose rows it sorts; nil keeps the
	// order of the keys.
	Order func(a, b Object) int
}

// GVK, GVR and GroupResource name the resource.
func (r *Resource) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

func (r *Resource) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
}

func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// APIVersion returns "v1" or "apps/v1".
func (r *Resource) APIVersion() string {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
}

// Sub finds a subresource by name, or nil.
func (r *Resource) Sub(name string) *Subresource {
	for i := range r.Subresources {
		if r.Subresources[i].Name == name {
			return &r.Subresources[i]
		}
	}
	return nil
}
