package expr

import (
	"sync"

	"github.com/google/cel-go/cel"
	celtypes "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/rowlock/rowlock/server/release"
)

// The names of variables.
const (
	varObject     = "object"
	varOldObject  = "oldObject"
	varParams     = "params"
	varRequest    = "request"
	varNamespace  = "namespaceObject"
	varAuthorizer = "authorizer"
	varResource   = "authorizer.requestResource"
	varVariables  = "variables"
)

// Offer lists the variables in addition to object, oldObject, request and namespaceObject.
type Offer struct {
	Params     bool
	Authorizer bool
	Mutation   bool // and the types that mutations make
}

func fields(list ...*celtypes.DeclField) map[string]*celtypes.DeclField {
	m := make(map[string]*celtypes.DeclField, len(list))
	for _, f := range list {
		m[f.Name] = f
	}
	return m
}

func required(name string, t *celtypes.DeclType) *celtypes.DeclField {
	return celtypes.NewDeclField(name, t, true, nil, nil)
}

func optional(name string, t *celtypes.DeclType) *celtypes.DeclField {
	return celtypes.NewDeclField(name, t, false, nil, nil)
}

// named returns a type whose fields are all strings that are always there.
func named(name string, names ...string) *celtypes.DeclType {
	list := make([]*celtypes.DeclField, len(names))
	for i, n := range names {
		list[i] = required(n, celtypes.StringType)
	}
	return celtypes.NewObjectType(name, fields(list...))
}

func listOf(t *celtypes.DeclType) *celtypes.DeclType { return celtypes.NewListType(t, -1) }

func mapOf(t *celtypes.DeclType) *celtypes.DeclType {
	return celtypes.NewMapType(celtypes.StringType, t, -1)
}

// requestType returns the type of an AdmissionRequest in expressions: without its uid and its objects.
func requestType() *celtypes.DeclType {
	kind := named("kubernetes.GroupVersionKind", "group", "version", "kind")
	resource := named("kubernetes.GroupVersionResource", "group", "version", "resource")
	user := celtypes.NewObjectType("kubernetes.UserInfo", fields(
		optional("username", celtypes.StringType),
		optional("uid", celtypes.StringType),
		optional("groups", listOf(celtypes.StringType)),
		optional("extra", mapOf(listOf(celtypes.StringType))),
	))
	return celtypes.NewObjectType("kubernetes.AdmissionRequest", fields(
		required("kind", kind),
		required("resource", resource),
		optional("subResource", celtypes.StringType),
		required("requestKind", kind),
		required("requestResource", resource),
		optional("requestSubResource", celtypes.StringType),
		required("name", celtypes.StringType),
		optional("namespace", celtypes.StringType),
		required("operation", celtypes.StringType),
		required("userInfo", user),
		optional("dryRun", celtypes.BoolType),
		optional("options", celtypes.DynType),
	))
}

// namespaceType returns the type of a Namespace in expressions.
func namespaceType() *celtypes.DeclType {
	condition := celtypes.NewObjectType("kubernetes.NamespaceCondition", fields(
		required("status", celtypes.StringType),
		required("type", celtypes.StringType),
		required("lastTransitionTime", celtypes.TimestampType),
		required("message", celtypes.StringType),
		required("reason", celtypes.StringType),
	))
	metadata := celtypes.NewObjectType("kubernetes.NamespaceMetadata", fields(
		required("name", celtypes.StringType),
		required("generateName", celtypes.StringType),
		required("namespace", celtypes.StringType),
		required("labels", mapOf(celtypes.StringType)),
		required("annotations", mapOf(celtypes.StringType)),
		required("UID", celtypes.StringType),
		required("creationTimestamp", celtypes.TimestampType),
		required("deletionGracePeriodSeconds", celtypes.IntType),
		required("deletionTimestamp", celtypes.TimestampType),
		required("generation", celtypes.IntType),
		required("resourceVersion", celtypes.StringType),
		required("finalizers", listOf(celtypes.StringType)),
	))
	return celtypes.NewObjectType("kubernetes.Namespace", fields(
		required("metadata", metadata),
		required("spec", celtypes.NewObjectType("kubernetes.NamespaceSpec", fields(required("finalizers", listOf(celtypes.StringType))))),
		required("status", celtypes.NewObjectType("kubernetes.NamespaceStatus", fields(
			required("conditions", listOf(condition)),
			required("phase", celtypes.StringType),
		))),
	))
}

// shapes are the types of the object and the parameters, where they are known: nil
// is anything.
type shapes struct{ object, params *celtypes.DeclType }

// declare adds the variables of an offer to the base.
func declare(of release.Version, o Offer, s shapes) (*environment.EnvSet, error) {
	base, err := Base(of)
	if err != nil {
		return nil, err
	}
	request, namespace := requestType(), namespaceType()
	decls := []*celtypes.DeclType{request, namespace}
	object, params := cel.DynType, cel.DynType
	if s.object != nil {
		object = s.object.CelType()
		decls = append(decls, s.object)
	}
	if s.params != nil {
		params = s.params.CelType()
		decls = append(decls, s.params)
	}
	vars := []cel.EnvOption{
		cel.Variable(varObject, object),
		cel.Variable(varOldObject, object),
		cel.Variable(varNamespace, namespace.CelType()),
		cel.Variable(varRequest, request.CelType()),
	}
	if o.Params {
		vars = append(vars, cel.Variable(varParams, params))
	}
	if o.Authorizer {
		vars = append(vars, cel.Variable(varAuthorizer, library.AuthorizerType), cel.Variable(varResource, library.ResourceCheckType))
	}
	set, err := base.Extend(environment.VersionedOptions{IntroducedVersion: always, EnvOptions: vars, DeclTypes: decls})
	if err != nil || !o.Mutation {
		return set, err
	}
	return mutation(set)
}

// offered is declare for each offer without known shapes, once.
func offered(of release.Version, o Offer) (*environment.EnvSet, error) {
	key := offeredBy{of.MinCompatibility(), o}
	made, ok := environments.Load(key)
	if !ok {
		made, _ = environments.LoadOrStore(key, sync.OnceValues(func() (*environment.EnvSet, error) { return declare(of, o, shapes{}) }))
	}
	return made.(func() (*environment.EnvSet, error))()
}

// environments holds the result of offered by offeredBy: eight at most for each release.
var environments sync.Map

// offeredBy is an offer of the releases that are compatible with the same one.
type offeredBy struct {
	compatible release.Version
	offer      Offer
}
