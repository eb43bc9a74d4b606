// Package certificates holds the strategies of CertificateSigningRequests and ClusterTrustBundles.
package certificates

import (
	"context"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/request"
)

// CertificateSigningRequest returns the strategy of CertificateSigningRequests. The request never changes; only
// metadata does.
func CertificateSigningRequest(on kinds.Feature) kinds.Strategy {
	r := requestRules{now: on.Has(release.KindRules133)}
	return kinds.Typed[*certificatesv1.CertificateSigningRequest]{
		ValidateName:       func(string, bool) []string { return nil },
		Meta:               &kinds.WholeMeta,
		PrepareForCreateIn: prepareRequest,
		PrepareForUpdate: func(r, old *certificatesv1.CertificateSigningRequest) {
			r.Spec = old.Spec
		},
		Validate:            r.validate,
		ValidateUpdate:      r.validateUpdate(mayNothing),
		UnconditionalUpdate: true,
		ResetFields:         []string{"spec"},
		Status: &kinds.Status[*certificatesv1.CertificateSigningRequest]{ // by signers
			Meta: &kinds.WholeMeta,
			Prepare: func(r, old *certificatesv1.CertificateSigningRequest) {
				keepConditions(r, old, certificatesv1.CertificateApproved)
				keepConditions(r, old, certificatesv1.CertificateDenied)
				stamp(r, old)
			},
			Validate:    r.validateUpdate(mayCertify),
			ResetFields: []string{"status.conditions"}, // those of the approval alone are kept from the object, but a stock server gives none an owner
		},
	}.Strategy()
}

// CertificateSigningRequestApproval returns how they are approved and denied.
func CertificateSigningRequestApproval(on kinds.Feature) kinds.Strategy {
	r := requestRules{now: on.Has(release.KindRules133)}
	return kinds.Typed[*certificatesv1.CertificateSigningRequest]{
		Meta: &kinds.WholeMeta,
		PrepareForUpdate: func(r, old *certificatesv1.CertificateSigningRequest) {
			stamp(r, old)
			conditions := r.Status.Conditions
			r.Spec = old.Spec
			r.Status = old.Status
			r.Status.Conditions = conditions
		},
		ValidateUpdate: r.validateUpdate(mayApprove),
		ResetFields:    []string{"spec", "status.certificate"},
	}.Strategy()
}

// CertificateSigningRequestFields are their selectable fields.
var CertificateSigningRequestFields = []kinds.SelectableField{{Label: "spec.signerName", Path: []string{"spec", "signerName"}}}

// CertificateSigningRequestColumns is their Table form.
var CertificateSigningRequestColumns = columns.Of(requestCells,
	columns.Name(),
	columns.Age(),
	columns.Text("SignerName", certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc()["signerName"]),
	columns.Text("Requestor", certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc()["request"]),
	columns.Text("RequestedDuration", certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc()["expirationSeconds"]),
	columns.Text("Condition", certificatesv1beta1.CertificateSigningRequestStatus{}.SwaggerDoc()["conditions"]),
)

func requestCells(r *certificatesv1.CertificateSigningRequest, now time.Time) []any {
	signer, wanted := "<none>", "<none>"
	if r.Spec.SignerName != "" {
		signer = r.Spec.SignerName
	}
	if s := r.Spec.ExpirationSeconds; s != nil {
		wanted = duration.HumanDuration(time.Duration(*s) * time.Second)
	}
	return []any{r.Name, columns.Since(r.CreationTimestamp, now), signer, r.Spec.Username, wanted, state(r)}
}

func state(r *certificatesv1.CertificateSigningRequest) string {
	has := map[certificatesv1.RequestConditionType]bool{}
	for _, c := range r.Status.Conditions {
		has[c.Type] = true
	}
	out := []string{"Pending"}
	switch {
	case has[certificatesv1.CertificateDenied]:
		out[0] = "Denied"
	case has[certificatesv1.CertificateApproved]:
		out[0] = "Approved"
	}
	if has[certificatesv1.CertificateFailed] {
		out = append(out, "Failed")
	}
	if len(r.Status.Certificate) > 0 {
		out = append(out, "Issued")
	}
	return strings.Join(out, ",")
}

// prepareRequest records the requesting user; it drops these fields of the client.
func prepareRequest(ctx context.Context, r *certificatesv1.CertificateSigningRequest) {
	r.Spec.Username, r.Spec.UID, r.Spec.Groups, r.Spec.Extra = "", "", nil, nil
	if user := request.From(ctx).User; user != nil {
		r.Spec.Username, r.Spec.UID = user.Name, user.UID
		r.Spec.Groups = append([]string(nil), user.Groups...)
		for k, v := range user.Extra {
			if r.Spec.Extra == nil {
				r.Spec.Extra = map[string]certificatesv1.ExtraValue{}
			}
			r.Spec.Extra[k] = append(certificatesv1.ExtraValue(nil), v...)
		}
	}
}

func conditionIndexes(r *certificatesv1.CertificateSigningRequest, t certificatesv1.RequestConditionType) []int {
	var out []int
	for i := range r.Status.Conditions {
		if r.Status.Conditions[i].Type == t {
			out = append(out, i)
		}
	}
	return out
}

// keepConditions restores conditions of a type that the caller may not change.
// Where some were added or removed, validation refuses the write.
func keepConditions(r, old *certificatesv1.CertificateSigningRequest, t certificatesv1.RequestConditionType) {
	mine, theirs := conditionIndexes(r, t), conditionIndexes(old, t)
	if len(mine) != len(theirs) {
		return
	}
	for i := range mine {
		r.Status.Conditions[mine[i]] = old.Status.Conditions[theirs[i]]
	}
}

// stamp fills in times of conditions; a condition that held before keeps the
// time since when.
func stamp(r, old *certificatesv1.CertificateSigningRequest) {
	now := metav1.Now()
	type held struct {
		of     certificatesv1.RequestConditionType
		status corev1.ConditionStatus
	}
	since := make(map[held]metav1.Time, len(old.Status.Conditions))
	for _, c := range slices.Backward(old.Status.Conditions) { // the first of several counts
		since[held{c.Type, c.Status}] = c.LastTransitionTime
	}
	for i := range r.Status.Conditions {
		c := &r.Status.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = now
		}
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = now
		if before, ok := since[held{c.Type, c.Status}]; ok {
			c.LastTransitionTime = before
		}
	}
}
