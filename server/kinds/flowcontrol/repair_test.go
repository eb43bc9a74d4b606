package flowcontrol_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
	"github.com/rowlock/rowlock/server/release"
)

// TestRepair: mandatory objects are always repaired, except for what the exempt level lends;
// suggested ones according to their annotation.
func TestRepair(t *testing.T) {
	for _, f := range flowcontrol.FixedLevels() {
		l := f.Object.DeepCopy()
		flowcontrol.RepairLevel(l, f) // the annotation
		if flowcontrol.RepairLevel(l, f) || !flowcontrol.Claimed(&l.ObjectMeta) {
			t.Errorf("%s is repaired though it is as it is to be", l.Name)
		}
		if l.Spec.Limited != nil {
			shares := int32(7)
			l.Spec.Limited.NominalConcurrencyShares = &shares
			if !flowcontrol.RepairLevel(l, f) || *l.Spec.Limited.NominalConcurrencyShares == 7 {
				t.Errorf("%s keeps a change of another user", l.Name)
			}
			l.Spec.Limited.NominalConcurrencyShares = &shares
			l.Annotations[flowcontrol.AutoUpdate] = "false"
			if repaired := *l.Spec.Limited.NominalConcurrencyShares; flowcontrol.RepairLevel(l, f) != f.Mandatory || repaired != 7 {
				t.Errorf("%s, which is not to be kept up", l.Name)
			}
			continue
		}
		shares := int32(9)
		l.Spec.Exempt.NominalConcurrencyShares = &shares
		if flowcontrol.RepairLevel(l, f) || *l.Spec.Exempt.NominalConcurrencyShares != 9 {
			t.Errorf("%s loses its shares", l.Name)
		}
	}
	for _, f := range flowcontrol.FixedSchemas(release.Default) {
		s := f.Object.DeepCopy()
		flowcontrol.RepairSchema(s, f)
		s.Spec.MatchingPrecedence = 4321
		delete(s.Annotations, flowcontrol.AutoUpdate)
		if !flowcontrol.RepairSchema(s, f) || (s.Spec.MatchingPrecedence == 4321) == f.Mandatory || flowcontrol.Claimed(&s.ObjectMeta) != f.Mandatory {
			t.Errorf("%s, changed and without the annotation: %d, %v", s.Name, s.Spec.MatchingPrecedence, s.Annotations)
		}
	}
}
