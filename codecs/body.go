package codecs

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs/budget"
)

// Expected describes the object that a request body must hold.
type Expected struct {
	GVK schema.GroupVersionKind // also sets missing fields to defaults
	// Known reports whether the server has a Go type for a kind, and makes a new object of
	// it if possible. It determines the error for a body of another kind; nil knows
	// none.
	Known func(schema.GroupVersionKind) (obj runtime.Object, known bool)
	// AnyKind takes a body of any kind of the expected version, but one must be
	// stated: custom resources, whose kind is a matter of validation.
	AnyKind bool
	// Weighed is called with the memory that the values of the body may take, once they are within limits,
	// and before they are decoded; it may be nil.
	Weighed func(weight int64) error
}

// Converter is a Codec of a form that is read by way of another one.
type Converter interface {
	// Convert implements Codec for data that it has converted already. The error is that of Kind.
	Convert(data []byte, s Strictness) (Codec, error)
}

// Weigh refuses data that would take too much memory as an obj, with a 413.
func Weigh(c Codec, data []byte, obj runtime.Object) (int64, error) {
	weight, err := c.Weigh(data, obj)
	if err == nil {
		if err = budget.Fits(weight, len(data), reflect.TypeOf(obj)); err != nil && c.MediaType() == JSON && budget.TooDeep(data) {
			err = apierrors.NewBadRequest("exceeded max depth") // no limit of ours alone
		}
	}
	return weight, err
}

// ReadBody decodes a request body into obj, a new object of the expected kind, and sets a missing kind and
// API version. It returns the kind in the body. data must not change afterwards: obj may share its memory.
// Errors are 400s with a stock server's messages; with s Strict any problem is such an error. If only the
// version of a body is refused, its problems are returned with the error.
func ReadBody(c Codec, data []byte, want Expected, obj runtime.Object, s Strictness) (schema.GroupVersionKind, []string, error) {
	weight, err := Weigh(c, data, obj)
	if err == nil && want.Weighed != nil {
		err = want.Weighed(weight)
	}
	if err != nil {
		return schema.GroupVersionKind{}, nil, err
	}
	if q, ok := c.(Quick); ok && !want.AnyKind {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		if q.DecodeClean(data, obj) && withDefaults(obj.GetObjectKind().GroupVersionKind(), want.GVK) == want.GVK {
			obj.GetObjectKind().SetGroupVersionKind(want.GVK)
			return want.GVK, nil, nil
		}
		// Find the error by the exact decoder.
		reflect.ValueOf(obj).Elem().SetZero()
	}
	if convert, ok := c.(Converter); ok {
		if c, err = convert.Convert(data, s); err != nil {
			return schema.GroupVersionKind{}, nil, DecodeError(err, schema.GroupVersionKind{}, want.GVK.Kind, data)
		}
	}
	stated, err := c.Kind(data)
	if err != nil {
		return stated, nil, DecodeError(err, schema.GroupVersionKind{}, want.GVK.Kind, data)
	}
	gvk := withDefaults(stated, want.GVK)
	if !want.AnyKind && gvk != want.GVK {
		problems, err := otherKind(c, gvk, want, data, s)
		return gvk, problems, err
	}
	problems, err := c.Decode(data, obj, s)
	if err != nil {
		return gvk, nil, DecodeError(err, gvk, want.GVK.Kind, data)
	}
	if want.AnyKind {
		if stated.Kind == "" {
			return stated, nil, DecodeError(runtime.NewMissingKindErr(string(data)), stated, want.GVK.Kind, data)
		}
		if stated.GroupVersion() != want.GVK.GroupVersion() {
			return stated, problems, otherVersion(stated, problems, want, s, data)
		}
	}
	return finish(gvk, problems, want, obj, s, data)
}

func finish(gvk schema.GroupVersionKind, problems []string, want Expected, obj runtime.Object, s Strictness, data []byte) (schema.GroupVersionKind, []string, error) {
	if s == Strict && len(problems) > 0 {
		return gvk, problems, DecodeError(StrictError(problems), gvk, want.GVK.Kind, data)
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return gvk, problems, nil
}

// withDefaults sets the missing parts of got. A version without a group is a version of the core group, so it
// is kept.
func withDefaults(got, def schema.GroupVersionKind) schema.GroupVersionKind {
	got.Kind = cmp.Or(got.Kind, def.Kind)
	if got.Version == "" && (got.Group == "" || got.Group == def.Group) {
		got.Group, got.Version = def.Group, def.Version
	}
	return got
}

// otherKind refuses a body of another kind or version, and returns its problems if that is all
// there is against it.
func otherKind(c Codec, gvk schema.GroupVersionKind, want Expected, data []byte, s Strictness) ([]string, error) {
	problems, err := want.Misfit(c, gvk, data, s)
	if err != nil {
		return nil, DecodeError(err, gvk, want.GVK.Kind, data)
	}
	return problems, otherVersion(gvk, problems, want, s, data)
}

// Misfit returns a stock server's error for data of kind gvk instead of the wanted kind. The error is nil for
// the wanted kind in another version; then the problems are those of data.
func (want Expected) Misfit(c Codec, gvk schema.GroupVersionKind, data []byte, s Strictness) (problems []string, err error) {
	var other runtime.Object
	known := false
	if want.Known != nil && (scheme(gvk.Group) == scheme(want.GVK.Group) || unversioned(gvk.Kind)) {
		other, known = want.Known(gvk)
	}
	if !known && gvk.GroupVersion().Empty() {
		// Data without a version is taken to be of the internal one.
		return nil, fmt.Errorf("no kind %q is registered for the internal version of group %q in scheme %q",
			gvk.Kind, want.GVK.Group, "pkg/api/legacyscheme/scheme.go:30")
	}
	if !known {
		return nil, fmt.Errorf("no kind %q is registered for version %q in scheme %q",
			gvk.Kind, gvk.GroupVersion(), scheme(want.GVK.Group))
	}
	if other != nil {
		weight, err := Weigh(c, data, other) // objects of another kind may take more memory
		if err == nil && want.Weighed != nil {
			err = want.Weighed(weight)
		}
		if err == nil {
			problems, err = c.Decode(data, other, s)
		}
		if err != nil {
			return nil, err
		}
	}
	if gvk.Kind == want.GVK.Kind {
		return problems, nil
	}
	return nil, fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion",
		goPackage(gvk), gvk.Kind, internalPackage(want.GVK.Group), want.GVK.Kind)
}

// goPackage returns the Go package of a kind in a stock server's messages.
func goPackage(gvk schema.GroupVersionKind) string {
	if unversioned(gvk.Kind) || inEachVersion(gvk.Kind) {
		return metav1.SchemeGroupVersion.Version
	}
	return gvk.Version
}

// unversioned reports whether a kind is known whatever version a body states.
func unversioned(kind string) bool {
	switch kind {
	case "Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList":
		return true
	}
	return false
}

// inEachVersion reports whether every version of every group has a kind.
func inEachVersion(kind string) bool {
	switch kind {
	case "WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions":
		return true
	}
	return false
}

// scheme returns the place at which the kinds of a group are registered, in a stock server's messages. A kind that
// is registered in one place is unknown in another.
func scheme(group string) string {
	switch group {
	case "apiregistration.k8s.io":
		return "pkg/apiserver/scheme/scheme.go:28"
	case "apiextensions.k8s.io":
		return "pkg/apiserver/apiserver.go:53"
	}
	return "pkg/api/legacyscheme/scheme.go:30"
}

func otherVersion(gvk schema.GroupVersionKind, problems []string, want Expected, s Strictness, data []byte) error {
	if s == Strict && len(problems) > 0 {
		return DecodeError(StrictError(problems), gvk, want.GVK.Kind, data)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
		gvk.GroupVersion(), want.GVK.GroupVersion()))
}

// DecodeError returns the answer to a body that cannot be decoded. found is the kind
// the body states, or zero if it states none.
func DecodeError(err error, found schema.GroupVersionKind, wantKind string, body []byte) error {
	if apierrors.IsRequestEntityTooLargeError(err) {
		return err // it is complete
	}
	if found.Kind != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", found.Kind, found.Version, wantKind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", wantKind, err, summary(body)))
}

// summary shows the start of a body: as text if it looks like a JSON object, else in hex.
func summary(body []byte) string {
	const limit = 30
	switch {
	case len(body) == 0:
		return "<empty>"
	case body[0] == '{':
		if len(body) > limit {
			return string(body[:limit]) + " ..."
		}
		return string(body)
	case len(body) > limit:
		return hex.EncodeToString(body[:limit]) + " ..."
	}
	return hex.EncodeToString(body)
}

// StrictError returns the error that a strict decoding makes of problems.
func StrictError(problems []string) error {
	return fmt.Errorf("strict decoding error: %s", strings.Join(problems, ", "))
}

// Warnings returns the texts of the Warning headers for problems. A YAML problem
// holds one line for each duplicate key.
func Warnings(problems []string) []string {
	var out []string
	for _, p := range problems {
		rest := strings.TrimPrefix(p, "error converting YAML to JSON: ")
		lines, isYAML := strings.CutPrefix(rest, "yaml: unmarshal errors:\n")
		if !isYAML {
			out = append(out, p)
			continue
		}
		for line := range strings.SplitSeq(lines, "\n") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// Consumable checks the Content-Type of a request on a route with a list of accepted types (patches of
// built-in resources), before any other check.
func Consumable(r *http.Request, consumes []string) error {
	contentType := r.Header.Get("Content-Type")
	if contentType != "" && matchesAny(contentType, consumes, false) {
		return nil
	}
	if r.ContentLength > 0 {
		return routeError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "415: Unsupported Media Type")
	}
	// Without a body the type is not to blame: nothing is left that could answer.
	if r.Header.Get("Content-Length") != "" {
		return routeError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "406: Not Acceptable\n\nAvailable representations: ")
	}
	return routeError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "415: Unsupported Media Type\n\nAvailable representations: ")
}

// PatchType reads the Content-Type of a patch, or gives a 415.
func PatchType(contentType string, supported []string) (string, error) {
	if i := strings.IndexByte(contentType, ';'); i > 0 {
		contentType = contentType[:i]
	}
	if slices.Contains(supported, contentType) {
		return contentType, nil
	}
	return "", unsupported(supported)
}

// maxContentType bounds the bytes of a Content-Type, whose parameters would take more memory than its text.
const maxContentType = 4 << 10

// BodyType reads the Content-Type of a body, JSON where there is none, or gives a 415.
func BodyType(contentType string, supported []string) (string, error) {
	if contentType == "" {
		return supported[0], nil
	}
	if len(contentType) <= maxContentType {
		if parsed, _, err := mime.ParseMediaType(contentType); err == nil && slices.Contains(supported, parsed) {
			return parsed, nil
		}
	}
	return "", unsupported(supported)
}

func unsupported(types []string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(types, ", "),
	}}
}
