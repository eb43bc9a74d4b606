// Package certificates processes CertificateSigningRequests for the signers of kubernetes.io: it approves
// those of kubelets, signs approved requests, and deletes obsolete ones.
package certificates

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission/certificates"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	requestsStorage = "certificatesigningrequests.certificates.k8s.io"
	requestsPath    = "/apis/certificates.k8s.io/v1/certificatesigningrequests/"
	signerAgent     = "certificate-controller" // field manager of Signer's writes
)

// signEvery is the resync period of the requests.
const signEvery = 10 * time.Second

// Signer approves permitted requests of kubelets, and signs approved requests for the three signers of
// kubernetes.io.
type Signer struct {
	reconcile.Base
	Authorizer authx.Authorizer
	Sign       func(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage, life time.Duration) ([]byte, error) // nil: nothing is signed
	Approve    bool                                                                                                   // whether requests of kubelets are approved
	MaxLife    time.Duration                                                                                          // 0: one year
}

// Run works until ctx ends.
func (c *Signer) Run(ctx context.Context) error {
	c.MaxLife = cmp.Or(c.MaxLife, 365*24*time.Hour)
	l := &reconcile.Loop{Base: c.Base, Reconcile: c.reconcile, Failure: "cannot approve or sign a certificate request", Resync: signEvery}
	l.Sources = []reconcile.Source{l.Objects(requestsStorage, func(item *cache.Item) bool {
		return reconcile.Text(item, "status", "certificate") == "" && strings.HasPrefix(reconcile.Text(item, "spec", "signerName"), "kubernetes.io/")
	})}
	return l.Run(ctx)
}

func has(r *certificatesv1.CertificateSigningRequest, t certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == t })
}

func (c *Signer) reconcile(ctx context.Context, key reconcile.Key) (again reconcile.Result, err error) {
	r := &certificatesv1.CertificateSigningRequest{}
	if !reconcile.Decode(c.Cache.Get(requestsStorage, "", key.Name), r) || len(r.Status.Certificate) > 0 {
		return again, nil
	}
	approved, over := has(r, certificatesv1.CertificateApproved), has(r, certificatesv1.CertificateDenied) || has(r, certificatesv1.CertificateFailed)
	if over || approved && c.Sign == nil || !approved && !c.Approve {
		return again, nil
	}
	request, err := certificates.Parse(r.Spec.Request)
	switch {
	case err != nil:
		return again, err
	case !approved:
		return again, c.approve(ctx, r, request)
	}
	return again, c.sign(ctx, r, request)
}

// approve approves a kubelet's request for its client certificate, if its author
// may have one: for itself, or for any node.
func (c *Signer) approve(ctx context.Context, r *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest) error {
	if r.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName || checkKubeletClient(request, r.Spec.Usages) != nil {
		return nil
	}
	user := &authx.Identity{Name: r.Spec.Username, UID: r.Spec.UID, Groups: r.Spec.Groups, Extra: map[string][]string{}}
	for k, v := range r.Spec.Extra {
		user.Extra[k] = v
	}
	for _, permission := range []struct{ sub, message string }{
		{"selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."},
		{"nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."},
	} {
		if permission.sub == "selfnodeclient" && r.Spec.Username != request.Subject.CommonName {
			continue
		}
		d, _, err := c.Authorizer.Authorize(ctx, &authx.Attributes{
			User: user, Verb: "create", APIGroup: "certificates.k8s.io", APIVersion: "*", Resource: "certificatesigningrequests", Subresource: permission.sub, ResourceRequest: true,
		})
		if d == authx.Allow {
			return c.condition(ctx, r, "approval", certificatesv1.CertificateApproved, "AutoApproved", permission.message)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Signer) condition(ctx context.Context, r *certificatesv1.CertificateSigningRequest, sub string, t certificatesv1.RequestConditionType, reason, message string) error {
	r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: metav1.Time{Time: c.Now()},
	})
	return c.put(ctx, r, sub)
}

func (c *Signer) put(ctx context.Context, r *certificatesv1.CertificateSigningRequest, sub string) error {
	return c.API.Call(ctx, signerAgent, http.MethodPut, requestsPath+url.PathEscape(r.Name)+"/"+sub, reconcile.JSON, r, nil)
}

func (c *Signer) sign(ctx context.Context, r *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest) error {
	var fault error
	switch r.Spec.SignerName {
	case certificatesv1.KubeAPIServerClientSignerName:
		fault = checkClient(r.Spec.Usages)
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		fault = checkKubeletClient(request, r.Spec.Usages)
	case certificatesv1.KubeletServingSignerName:
		fault = checkKubeletServing(request, r.Spec.Usages)
	default:
		return nil
	}
	if fault != nil {
		return c.condition(ctx, r, "status", certificatesv1.CertificateFailed, "SignerValidationFailure", fault.Error())
	}
	cert, err := c.Sign(request, r.Spec.Usages, c.life(r.Spec.ExpirationSeconds))
	if err != nil {
		return fmt.Errorf("signing: %w", err)
	}
	r.Status.Certificate = cert
	return c.put(ctx, r, "status")
}

// minLife is the shortest validity of a certificate, however short the requested one.
const minLife = 10 * time.Minute

func (c *Signer) life(seconds *int32) time.Duration {
	if seconds == nil {
		return c.MaxLife
	}
	return min(c.MaxLife, max(minLife, time.Duration(*seconds)*time.Second))
}

func checkClient(usages []certificatesv1.KeyUsage) error {
	for _, u := range usages {
		switch u {
		case certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth:
		default:
			return fmt.Errorf("invalid usage for client certificate: %s", u)
		}
	}
	if !slices.Contains(usages, certificatesv1.UsageClientAuth) {
		return fmt.Errorf("missing required usage for client certificate: %s", certificatesv1.UsageClientAuth)
	}
	return nil
}

func checkKubeletClient(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch {
	case !slices.Equal(r.Subject.Organization, []string{authx.GroupNodes}):
		return errors.New("subject organization is not system:nodes")
	case len(r.DNSNames) > 0:
		return errors.New("DNS subjectAltNames are not allowed")
	case len(r.EmailAddresses) > 0:
		return errors.New("Email subjectAltNames are not allowed")
	case len(r.IPAddresses) > 0:
		return errors.New("IP subjectAltNames are not allowed")
	case len(r.URIs) > 0:
		return errors.New("URI subjectAltNames are not allowed")
	case !strings.HasPrefix(r.Subject.CommonName, authx.NodePrefix):
		return errors.New("subject common name does not begin with system:node:")
	}
	return checkKubeletUsages(usages, certificatesv1.UsageClientAuth)
}

func checkKubeletServing(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch {
	case !slices.Equal(r.Subject.Organization, []string{authx.GroupNodes}):
		return errors.New("subject organization is not system:nodes")
	case len(r.DNSNames)+len(r.IPAddresses) == 0:
		return errors.New("DNS or IP subjectAltName is required")
	case len(r.EmailAddresses) > 0:
		return errors.New("Email subjectAltNames are not allowed")
	case len(r.URIs) > 0:
		return errors.New("URI subjectAltNames are not allowed")
	}
	if err := checkKubeletUsages(usages, certificatesv1.UsageServerAuth); err != nil {
		return err
	}
	if !strings.HasPrefix(r.Subject.CommonName, authx.NodePrefix) {
		return errors.New("subject common name does not begin with system:node:")
	}
	return nil
}

// checkKubeletUsages requires a kubelet's usages, with or without key encipherment, which only RSA keys have.
func checkKubeletUsages(usages []certificatesv1.KeyUsage, auth certificatesv1.KeyUsage) error {
	all := []certificatesv1.KeyUsage{auth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment}
	slices.Sort(all)
	got := slices.Clone(usages)
	slices.Sort(got)
	if got = slices.Compact(got); slices.Equal(got, all) {
		return nil
	}
	without := slices.DeleteFunc(slices.Clone(all), func(u certificatesv1.KeyUsage) bool { return u == certificatesv1.UsageKeyEncipherment })
	if slices.Equal(got, without) {
		return nil
	}
	return fmt.Errorf("usages did not match %v", all)
}
