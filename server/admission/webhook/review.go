package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	sigsjson "sigs.k8s.io/json"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/criteria"
)

// reviewKind returns the kind of reviews in a version. They have the same fields in all.
func reviewKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: admissionv1.GroupName, Version: version, Kind: "AdmissionReview"}
}

// prepare makes the JSON of the objects, which reviews of the same write share.
func (s *shown) prepare(a *admission.Attributes) error {
	for _, part := range []struct {
		obj  runtime.Object
		into *[]byte
	}{{a.Object, &s.object}, {a.Old, &s.old}} {
		if part.obj == nil || *part.into != nil {
			continue
		}
		obj, err := s.target.Show(a, part.obj)
		if err != nil {
			return err
		}
		if *part.into, err = s.codec.Append(nil, obj); err != nil {
			return err
		}
	}
	return nil
}

// review returns the AdmissionReview of a write, with a new UID. The objects are in the target's version.
func (s *shown) review(a *admission.Attributes, version string) (types.UID, []byte, error) {
	uid := uuid.NewUUID()
	own := metav1.GroupVersionKind(criteria.Kind(a.Resource, a.Subresource))
	resource := metav1.GroupVersionResource(a.Resource.GVR())
	dry := a.DryRun
	r := &admissionv1.AdmissionRequest{
		UID: uid, Kind: metav1.GroupVersionKind(s.target.Kind), Resource: metav1.GroupVersionResource(s.target.Resource.GVR()), SubResource: a.Subresource,
		RequestKind: &own, RequestResource: &resource, RequestSubResource: a.Subresource,
		Name: a.Name, Namespace: a.Namespace, Operation: admissionv1.Operation(a.Operation), UserInfo: a.User.UserInfo(),
		Object: runtime.RawExtension{Raw: s.object}, OldObject: runtime.RawExtension{Raw: s.old}, DryRun: &dry,
	}
	if a.Options != nil {
		options, err := s.codec.Append(nil, a.Options)
		if err != nil {
			return "", nil, err
		}
		r.Options.Raw = options
	}
	review := &admissionv1.AdmissionReview{Request: r}
	review.SetGroupVersionKind(reviewKind(version))
	body, err := json.Marshal(review)
	return uid, body, err
}

// decode decodes an untrusted answer. verify refuses one without a kind, as a stock server does.
func decode(data []byte, version string) (*admissionv1.AdmissionReview, error) {
	var meta metav1.TypeMeta
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(data, &meta); err != nil {
		return nil, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	gvk, want := meta.GroupVersionKind(), reviewKind(version)
	switch {
	case gvk.Empty() || gvk == want:
	case gvk.Group == want.Group && gvk.Kind == want.Kind:
		return nil, fmt.Errorf("converting (%s.AdmissionReview) to (%s.AdmissionReview): unknown conversion", gvk.Version, version)
	case gvk == schema.GroupVersionKind{Version: "v1", Kind: "Status"}:
		return &admissionv1.AdmissionReview{}, statusError(data)
	default:
		return nil, fmt.Errorf("no kind %q is registered for version %q", gvk.Kind, gvk.GroupVersion())
	}
	review := &admissionv1.AdmissionReview{}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(data, review); err != nil {
		return nil, err
	}
	return review, nil
}

func statusError(data []byte) error {
	st := metav1.Status{}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(data, &st); err != nil {
		return err
	}
	if st.Status == metav1.StatusSuccess {
		return nil // without a reason
	}
	return &apierrors.StatusError{ErrStatus: st}
}

// answer is a webhook's verified answer.
type answer struct {
	allowed     bool
	result      *metav1.Status
	patch       []byte
	patchType   admissionv1.PatchType
	warnings    []string
	annotations map[string]string
}

// verify checks that a review answers the request. In v1beta1 the UID and the patch type are optional.
func verify(review *admissionv1.AdmissionReview, uid types.UID, version string, mutates bool) (*answer, error) {
	r := review.Response
	if r == nil {
		return nil, errors.New("webhook response was absent")
	}
	a := &answer{allowed: r.Allowed, result: r.Result, warnings: r.Warnings, annotations: r.AuditAnnotations}
	if version == "v1beta1" {
		if mutates && len(r.Patch) > 0 {
			a.patch, a.patchType = r.Patch, admissionv1.PatchTypeJSONPatch
		}
		return a, nil
	}
	want := reviewKind(version)
	switch {
	case r.UID != uid:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, r.UID)
	case review.GroupVersionKind() != want:
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want, review.GroupVersionKind())
	}
	if err := verifyPatch(r, mutates); err != nil {
		return nil, err
	}
	if mutates && r.PatchType != nil {
		a.patch, a.patchType = r.Patch, *r.PatchType
	}
	return a, nil
}

func verifyPatch(r *admissionv1.AdmissionResponse, mutates bool) error {
	switch {
	case !mutates && len(r.Patch) > 0:
		return errors.New("validating webhook may not return response.patch")
	case !mutates && r.PatchType != nil:
		return errors.New("validating webhook may not return response.patchType")
	case len(r.Patch) > 0 && r.PatchType == nil:
		return errors.New("webhook returned response.patch but not response.patchType")
	case len(r.Patch) == 0 && r.PatchType != nil:
		return errors.New("webhook returned response.patchType but not response.patch")
	case r.PatchType != nil && *r.PatchType == "":
		return fmt.Errorf("webhook returned invalid response.patchType of %q", *r.PatchType)
	}
	return nil
}

// maxNotes bounds the bytes of the audit annotations of an answer, which may repeat what a client sent.
const maxNotes = 256 << 10

// report adds the warnings and audit annotations of an answer to the request. It omits annotations beyond their bound.
func (w *answer) report(hook string, a *admission.Attributes) {
	left := maxNotes
	for _, k := range slices.Sorted(maps.Keys(w.annotations)) {
		key, value := hook+"/"+k, w.annotations[k]
		if size := len(key) + len(value); size <= left && len(validation.IsQualifiedName(key)) == 0 {
			left -= size
			a.Annotate(key, value)
		}
	}
	for _, text := range w.warnings {
		a.Warn(strings.ToValidUTF8(text, ""))
	}
}

// denial returns the error for a refusal by a webhook, if its status is valid for one.
func denial(hook string, result *metav1.Status) *apierrors.StatusError {
	st := metav1.Status{}
	if result != nil {
		st = *result
	}
	if st.Code < http.StatusBadRequest {
		st.Code = http.StatusBadRequest
	}
	if st.Status == "" || st.Status == metav1.StatusSuccess {
		st.Status = metav1.StatusFailure
	}
	by := fmt.Sprintf("admission webhook %q denied the request", hook)
	switch {
	case st.Message != "":
		st.Message = by + ": " + st.Message
	case st.Reason != "":
		st.Message = by + ": " + string(st.Reason)
	default:
		st.Message = by + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: st}
}
