package budget_test

import (
	"strings"
	"testing"

	"github.com/rowlock/rowlock/codecs/budget"
)

// TestSizes: by default the bounds are those of a stock server, and those from before objects could be
// larger; all of them leave room for the largest object that is configured.
func TestSizes(t *testing.T) {
	var d budget.Sizes
	if d.Object() != 1_572_864 || d.Body() != 3_145_728 || d.Share() != 192<<20 || d.AllUsers() != 384<<20 || d.Answer() != 8<<20 || d.Recorded() != 4<<20 ||
		d.Events() != 24<<20 || d.SlowEvents() != 64<<20 {
		t.Errorf("the defaults are others: %+v", d)
	}
	if n := int(d.Body()); budget.MemoryOf(n) != 96<<20 || budget.RereadOf(n) != 12<<20 || budget.Copies(n) != 0 || budget.Decoded(n) != 0 {
		t.Error("the bounds of a body of the default size are others")
	}
	for _, n := range []int64{0, budget.DefaultObject, 20 << 20, budget.MostObject} {
		s, err := budget.SizesOf(n)
		if err != nil {
			t.Fatal(err)
		}
		object, body := s.Object(), s.Body()
		if s.Share() < budget.MemoryOf(int(object))+budget.Copies(int(object))+budget.Decoded(int(object)) || s.AllUsers() < 2*s.Share() || s.Bodies() < 2*body ||
			s.UserAnswers() < 8*object || s.Answer() < object*4/3 || s.Recorded() < object || int64(s.Events()) < 4*object || int64(s.SlowEvents()) < 2*object {
			t.Errorf("%d: a bound has no room for the largest object: %+v", n, s)
		}
	}
	for _, n := range []int64{-1, 1, budget.DefaultObject - 1, budget.MostObject + 1} {
		if _, err := budget.SizesOf(n); err == nil || !strings.Contains(err.Error(), "use 1572864 to 33554432 bytes") {
			t.Errorf("%d: %v", n, err)
		}
	}
}
