package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// TestTogether: errors have the words of the library, up to a readable length.
func TestTogether(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	for _, errs := range [][]error{{a}, {a, a}, {a, b}, {b, a, b, a}} {
		if got, want := rules.Aggregate(errs).Error(), utilerrors.NewAggregate(errs).Error(); got != want {
			t.Errorf("%v: %s, want %s", errs, got, want)
		}
	}
	list := field.ErrorList{field.Required(field.NewPath("x"), ""), field.Required(field.NewPath("y"), "")}
	if got, want := rules.Aggregate(list).Error(), list.ToAggregate().Error(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := rules.Aggregate(list[:0]); err != nil {
		t.Errorf("of none: %v", err)
	}
	many := make([]error, 100_000)
	for i := range many {
		many[i] = fmt.Errorf("the value of item %d is no good", i)
	}
	text := rules.Aggregate(many).Error()
	if listed := strings.Count(text, "no good"); len(text) > 300<<10 || !strings.HasSuffix(text, fmt.Sprintf(", %d more errors]", len(many)-listed)) {
		t.Errorf("%d bytes that end with %s", len(text), text[len(text)-50:])
	}
}
