package status_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/status"
)

// TestInvalid: what fits is told as every server tells it.
func TestInvalid(t *testing.T) {
	path := field.NewPath("spec").Child("a")
	list := field.ErrorList{
		field.Required(path, "no a"), field.Invalid(path.Index(1), []string{"x"}, "bad"), field.Required(path, "no a"), field.TooLong(path.Key("k"), "", 5),
		field.NotSupported(path, "b", []string{"c", "d"}), field.Duplicate(field.NewPath(""), nil), field.InternalError(path, fmt.Errorf("e")),
	}
	kind := schema.GroupKind{Group: "g", Kind: "K"}
	for n := range len(list) + 1 {
		want, got := apierrors.NewInvalid(kind, "x", list[:n]), status.Invalid(kind, "x", list[:n])
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
	st := status.Invalid(schema.GroupKind{Kind: "K"}, "x", list).ErrStatus
	last := st.Details.Causes[len(st.Details.Causes)-1]
	if len(st.Message) > 400_000 || len(st.Details.Causes) != 15 || last.Message != "9986 more errors" || !strings.HasSuffix(st.Message, ", 9986 more errors]") {
		t.Errorf("%d bytes, %d causes, last %v", len(st.Message), len(st.Details.Causes), last)
	}
}
