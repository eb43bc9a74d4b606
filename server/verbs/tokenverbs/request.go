package tokenverbs

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/verbs"
)

// RenewedAge is the lifetime that pods request if they expect the extension.
const RenewedAge = 3607 * time.Second

const (
	defaultAge = int64(3600)
	minAge     = 10 * time.Minute
	maxAge     = int64(1) << 32 // seconds

	extendedAge = 365 * 24 * time.Hour // the lifetime that they get
)

// request serves serviceaccounts/token.
func (cfg Config) request(h *verbs.Handler, c *verbs.Call) error {
	req := &authenticationv1.TokenRequest{}
	options, err := h.ReadPost(c, gvk("TokenRequest"), req, func() {
		if req.Spec.ExpirationSeconds == nil {
			seconds := defaultAge
			req.Spec.ExpirationSeconds = &seconds
		}
	})
	if err != nil {
		return err
	}
	if err := c.MatchNamespace(req); err != nil {
		return err
	}
	h.Writes.Own(requests, c.Sub.Name, req, c.Manager(options.FieldManager))
	// Admission and the rest go by what all servers have written: no commit verifies it later.
	if err := h.Objects.CatchUp(c.Context()); err != nil {
		return err
	}
	var account *corev1.ServiceAccount
	if err := h.Writes.Admit(c.R.Context(), c.Write(options, "", options.DryRun), admission.Create, req, func() (err error) {
		account, err = cfg.complete(h, c, req)
		return err
	}); err != nil {
		return err
	}
	grant := &authx.Grant{
		Namespace: account.Namespace, Account: authx.Ref{Name: account.Name, UID: string(account.UID)},
		Audiences: req.Spec.Audiences, Issued: req.CreationTimestamp.Time,
	}
	if err := bind(h, c, req, grant); err != nil {
		return err
	}
	cfg.age(c, req, grant)
	token, id, err := cfg.Issue(c.Context(), grant)
	switch {
	case c.Context().Err() != nil && err != nil:
		return c.Context().Err()
	case err != nil: // a client that may request tokens sees the signer's error, as on a stock server
		return status.Plain(err.Error())
	}
	c.Scope.Annotate("authentication.kubernetes.io/issued-credential-id", "JTI="+id)
	req.Status = authenticationv1.TokenRequestStatus{
		Token:               token,
		ExpirationTimestamp: metav1.NewTime(grant.Issued.Add(time.Duration(*req.Spec.ExpirationSeconds) * time.Second)),
	}
	req.SetGroupVersionKind(gvk("TokenRequest"))
	return h.Send(c, http.StatusCreated, req)
}

// complete finds the account, and validates and completes the request.
func (cfg Config) complete(h *verbs.Handler, c *verbs.Call, req *authenticationv1.TokenRequest) (*corev1.ServiceAccount, error) {
	kind := gvk("TokenRequest").GroupKind()
	if req.Name != "" && req.Name != c.Info.Name {
		return nil, status.Invalid(c.Resource.Release, kind, c.Info.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), req.Name, "must match the service account name if specified"),
		})
	}
	obj, _, err := h.Objects.Live(c.Context(), c.Permit(), objects.Place{Resource: c.Resource, Namespace: c.Info.Namespace, Name: c.Info.Name})
	if err != nil {
		return nil, err
	}
	account := obj.(*corev1.ServiceAccount)
	if err := matchAccount(h, c, req, account); err != nil {
		return nil, err
	}
	if len(req.Spec.Audiences) == 0 {
		req.Spec.Audiences = cfg.Audiences
	}
	req.Name, req.Namespace = account.Name, account.Namespace
	req.CreationTimestamp = metav1.NewTime(cfg.Clock().Truncate(time.Second))
	req.Status = authenticationv1.TokenRequestStatus{}
	if errs := validate(req); len(errs) > 0 {
		return nil, status.Invalid(c.Resource.Release, kind, "", errs)
	}
	return account, nil
}

// longestUID bounds the part of a client's UID that appears in errors, warnings and audit events, which
// outlive the request.
const longestUID = 256

// matchAccount compares the UID in the request with that of the account, and sets it.
func matchAccount(h *verbs.Handler, c *verbs.Call, req *authenticationv1.TokenRequest, account *corev1.ServiceAccount) error {
	if !h.Catalogue.Release().Has(release.TokenUIDs) {
		return nil
	}
	if req.UID == "" {
		req.UID = account.UID
	}
	if req.UID == account.UID {
		return nil
	}
	named := status.Brief(string(req.UID), longestUID)
	problem := fmt.Sprintf("the UID in the token request (%s) does not match the UID of the service account (%s)", named, account.UID)
	if h.Enabled("TokenRequestServiceAccountUIDValidation") {
		kind := gvk("TokenRequest")
		return apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, c.Info.Name, errors.New(problem))
	}
	c.Scope.Annotate("authentication.k8s.io/token-request-uid-mismatch", problem)
	c.Scope.Warn(problem + " but TokenRequestServiceAccountUIDValidation is not enabled. In the future, this will return a conflict error")
	return nil
}

func validate(req *authenticationv1.TokenRequest) field.ErrorList {
	path, seconds := field.NewPath("spec", "expirationSeconds"), *req.Spec.ExpirationSeconds
	switch {
	case seconds < int64(minAge/time.Second):
		return field.ErrorList{field.Invalid(path, seconds, "may not specify a duration less than 10 minutes")}
	case seconds > maxAge:
		return field.ErrorList{field.Invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")}
	}
	return nil
}

// bind finds the object whose deletion ends the token.
func bind(h *verbs.Handler, c *verbs.Call, req *authenticationv1.TokenRequest, g *authx.Grant) error {
	want := req.Spec.BoundObjectRef
	if want == nil {
		return nil
	}
	kind := schema.FromAPIVersionAndKind(want.APIVersion, want.Kind)
	plural, known := map[schema.GroupKind]string{{Kind: "Pod"}: "pods", {Kind: "Node"}: "nodes", {Kind: "Secret"}: "secrets"}[kind.GroupKind()]
	if !known {
		return apierrors.NewBadRequest("cannot bind token to object of type " + kind.String())
	}
	namespace := c.Info.Namespace
	if plural == "nodes" {
		namespace = ""
	}
	obj, err := find(h, c, plural, namespace, want.Name)
	if err != nil {
		return err
	}
	ref := &authx.Ref{Name: obj.GetName(), UID: string(obj.GetUID())}
	switch o := obj.(type) {
	case *corev1.Pod:
		if o.Spec.ServiceAccountName != c.Info.Name {
			return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", c.Info.Name))
		}
		g.Pod = ref
		if g.Node, err = nodeOf(h, c, o); err != nil {
			return err
		}
	case *corev1.Node:
		g.Node = ref
	case *corev1.Secret:
		g.Secret = ref
	}
	if want.UID != "" && want.UID != obj.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, want.Name, fmt.Errorf(
			"the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", want.UID))
	}
	return nil
}

// find returns an object to which a token is bound.
func find(h *verbs.Handler, c *verbs.Call, plural, namespace, name string) (kinds.Object, error) {
	obj, _, err := h.Objects.Live(c.Context(), c.Permit(), objects.Place{Resource: h.Catalogue.Lookup("", "v1", plural), Namespace: namespace, Name: name})
	return obj, err
}

// nodeOf returns the node of a pod, with its UID if the node exists.
func nodeOf(h *verbs.Handler, c *verbs.Call, pod *corev1.Pod) (*authx.Ref, error) {
	name := pod.Spec.NodeName
	if name == "" {
		return nil, nil
	}
	node, err := find(h, c, "nodes", "", name)
	switch {
	case apierrors.IsNotFound(err):
		return &authx.Ref{Name: name}, nil
	case err != nil:
		return nil, err
	}
	return &authx.Ref{Name: name, UID: string(node.GetUID())}, nil
}

// age sets the lifetime of the token.
func (cfg Config) age(c *verbs.Call, req *authenticationv1.TokenRequest, g *authx.Grant) {
	if limit := int64(cfg.MaxAge / time.Second); limit > 0 && *req.Spec.ExpirationSeconds > limit {
		c.Scope.Warn(fmt.Sprintf("requested expiration of %d seconds shortened to %d seconds", *req.Spec.ExpirationSeconds, limit))
		req.Spec.ExpirationSeconds = &limit
	}
	age := time.Duration(*req.Spec.ExpirationSeconds) * time.Second
	g.Expires = g.Issued.Add(age)
	if cfg.Extend && g.Pod != nil && *req.Spec.ExpirationSeconds == int64(RenewedAge/time.Second) && sets.New(g.Audiences...).Equal(sets.New(cfg.Audiences...)) {
		longest := extendedAge
		if cfg.MaxExtended > 0 {
			longest = min(longest, cfg.MaxExtended)
		}
		g.WarnAfter, g.Expires = g.Expires, g.Issued.Add(longest)
	}
}
