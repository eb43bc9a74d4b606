package status_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
)

// TestInvalid: errors within the bound are those of the library.
func TestInvalid(t *testing.T) {
	path := field.NewPath("spec").Child("a")
	list := field.ErrorList{
		field.Required(path, "no a"), field.Invalid(path.Index(1), []string{"x"}, "bad"), field.Required(path, "no a"), field.TooLong(path.Key("k"), "", 5),
		field.NotSupported(path, "b", []string{"c", "d"}), field.Duplicate(field.NewPath(""), nil), field.InternalError(path, fmt.Errorf("e")),
	}
	kind := schema.GroupKind{Group: "g", Kind: "K"}
	for n := range len(list) + 1 {
		want, got := apierrors.NewInvalid(kind, "x", list[:n]), status.Invalid(release.Newest, kind, "x", list[:n])
		if diff := cmp.Diff(want.ErrStatus, got.ErrStatus); diff != "" {
			t.Errorf("of %d errors: %s", n, diff)
		}
	}
}

// TestInvalidIsBounded: every item of a list may have an error that shows all of the list.
func TestInvalidIsBounded(t *testing.T) {
	var list field.ErrorList
	value := strings.Repeat("x", 20_000)
	for i := range 10_000 {
		list = append(list, field.Invalid(field.NewPath("a").Index(i), value, "bad"))
	}
	st := status.Invalid(release.Default, schema.GroupKind{Kind: "K"}, "x", list).ErrStatus
	last := st.Details.Causes[len(st.Details.Causes)-1]
	if len(st.Message) > 400_000 || len(st.Details.Causes) != 15 || last.Message != "9986 more errors" || !strings.HasSuffix(st.Message, ", 9986 more errors]") {
		t.Errorf("%d bytes, %d causes, last %v", len(st.Message), len(st.Details.Causes), last)
	}
}

// TestTextsAreBounded: whatever made an error, and however long it is, what the client gets
// has a bound. What fits stays as it is.
func TestTextsAreBounded(t *testing.T) {
	long := strings.Repeat("ü", 1<<20)
	kind, gr := schema.GroupKind{Kind: "K"}, schema.GroupResource{Resource: "ks"}
	var causes []metav1.StatusCause
	for range 100_000 {
		causes = append(causes, metav1.StatusCause{Field: "a", Message: "b"})
	}
	many := apierrors.NewInvalid(kind, "x", nil)
	many.ErrStatus.Details.Causes = causes
	for name, err := range map[string]error{
		"one long error": status.Invalid(release.Default, kind, "x", field.ErrorList{field.Invalid(field.NewPath("a"), long, "bad"), field.Required(field.NewPath("b"), "")}),
		"a long path":    status.Invalid(release.Default, kind, "x", field.ErrorList{field.Required(field.NewPath("a").Key(long), "")}),
		"a stock list":   apierrors.NewInvalid(kind, "x", field.ErrorList{field.Invalid(field.NewPath("a"), long, "bad"), field.Required(field.NewPath("b"), "")}),
		"a refusal":      apierrors.NewForbidden(gr, "x", fmt.Errorf("it has %s", long)),
		"plain":          status.Plain(long),
		"many causes":    many,
	} {
		before := err.Error()
		st, _ := status.Of(err, gr)
		size := len(st.Message)
		if st.Details != nil {
			for _, c := range st.Details.Causes {
				size += len(c.Message) + len(c.Field)
			}
			if len(st.Details.Causes) > 10_001 {
				t.Errorf("%s: %d causes", name, len(st.Details.Causes))
			}
		}
		if size > 2<<20 || !utf8.ValidString(st.Message) {
			t.Errorf("%s: %d bytes", name, size)
		}
		if !strings.Contains(text(t, st), "more bytes") && !strings.Contains(text(t, st), "more errors") {
			t.Errorf("%s: it does not say that there is more", name)
		}
		if err.Error() != before || len(causes) != len(many.ErrStatus.Details.Causes) {
			t.Errorf("%s: the error itself was changed", name)
		}
	}
	short := apierrors.NewInvalid(kind, "x", field.ErrorList{field.Required(field.NewPath("a"), "b")})
	st, _ := status.Of(short, gr)
	if diff := cmp.Diff(short.ErrStatus.Details, st.Details); diff != "" || st.Message != short.ErrStatus.Message {
		t.Error(st.Message, diff)
	}
}

func text(t *testing.T, st *metav1.Status) string {
	t.Helper()
	data, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestWordings: details of errors that the code words as release 1.33 does are those of 1.32 where that is the release.
func TestWordings(t *testing.T) {
	for _, c := range []struct {
		err          *field.Error
		before, from string
	}{
		{&field.Error{Type: field.ErrorTypeRequired, Field: "spec.versions[1].schema.openAPIV3Schema"}, "Required value: schemas are required", "Required value"},
		{&field.Error{Type: field.ErrorTypeRequired, Field: "spec.versions[1].name"}, "Required value", "Required value"},
		{&field.Error{Type: field.ErrorTypeInvalid, Field: "spec.validations[0].message", BadValue: " ", Detail: "must be non-empty if specified"}, `Invalid value: " ": message must be non-empty if specified`, `Invalid value: " ": must be non-empty if specified`},
		{&field.Error{Type: field.ErrorTypeInvalid, Field: "spec.validations[0].messageExpression", BadValue: " ", Detail: "must be non-empty if specified"}, `Invalid value: " ": must be non-empty if specified`, `Invalid value: " ": must be non-empty if specified`},
		{&field.Error{Type: field.ErrorTypeInvalid, Field: "spec.versions[0].schema.openAPIV3Schema.x-kubernetes-validations[0].fieldPath", BadValue: "a", Detail: "must be a valid path"}, `Invalid value: "a": fieldPath must be a valid path`, `Invalid value: "a": must be a valid path`},
		{&field.Error{Type: field.ErrorTypeInvalid, Field: "spec.variables[2].name", BadValue: "a b", Detail: "must be a valid CEL identifier"}, `Invalid value: "a b": name is not a valid CEL identifier`, `Invalid value: "a b": must be a valid CEL identifier`},
		{&field.Error{Type: field.ErrorTypeInvalid, Field: "spec.versions[0].selectableFields", BadValue: "", Detail: "may only be set when `version.schema.openAPIV3Schema` is not included"}, `Invalid value: "": selectableFields may only be set when version.schema.openAPIV3Schema is not included`, "Invalid value: \"\": may only be set when `version.schema.openAPIV3Schema` is not included"},
		{&field.Error{Type: field.ErrorTypeInvalid, Field: "status.storedVersions[0]", BadValue: "v1", Detail: "missing from spec.versions; v1 was previously a storage version"}, `Invalid value: "v1": must appear in spec.versions`, `Invalid value: "v1": missing from spec.versions; v1 was previously a storage version`},
		{&field.Error{Type: field.ErrorTypeInvalid, Field: "metadata.labels", BadValue: "a/b/c", Detail: "a valid label key must consist of x"}, `Invalid value: "a/b/c": a qualified name must consist of x`, `Invalid value: "a/b/c": a valid label key must consist of x`},
		{&field.Error{Type: field.ErrorTypeInvalid, Field: "a", BadValue: []string{"<"}, Detail: "b"}, `Invalid value: []string{"<"}: b`, `Invalid value: ["\u003c"]: b`},
		{&field.Error{Type: field.ErrorTypeTooMany, Field: "a", BadValue: 2, Detail: "must have at most 1 item"}, `Too many: 2: must have at most 1 items`, `Too many: 2: must have at most 1 item`},
	} {
		for v, want := range map[release.Version]string{release.V132: c.before, release.V133: c.from, release.V136: c.from} {
			if got := status.Body(v, c.err); got != want {
				t.Errorf("%s, %s:\n got %s\nwant %s", v, c.err.Field, got, want)
			}
		}
	}
}
