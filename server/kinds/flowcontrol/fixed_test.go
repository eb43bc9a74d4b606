package flowcontrol_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
)

// TestFixed holds the objects that are there from the start against the rules.
func TestFixed(t *testing.T) {
	ctx := context.Background()
	levels := map[string]bool{}
	for _, l := range append(flowcontrol.MandatoryLevels(), flowcontrol.SuggestedLevels()...) {
		levels[l.Name] = true
		flowcontrol.PriorityLevelConfiguration.Default(l)
		if errs := flowcontrol.PriorityLevelConfiguration.Validate(ctx, l); len(errs) > 0 {
			t.Errorf("%s: %v", l.Name, errs)
		}
	}
	for _, s := range append(flowcontrol.MandatorySchemas(), flowcontrol.SuggestedSchemas()...) {
		flowcontrol.FlowSchema.Default(s)
		if errs := flowcontrol.FlowSchema.Validate(ctx, s); len(errs) > 0 {
			t.Errorf("%s: %v", s.Name, errs)
		}
		if level := s.Spec.PriorityLevelConfiguration.Name; !levels[level] {
			t.Errorf("%s names level %q, which is missing", s.Name, level)
		}
	}
}

// Leader election of the system is not of one namespace alone.
func TestLeaderElection(t *testing.T) {
	for _, s := range flowcontrol.SuggestedSchemas() {
		if s.Name != "system-leader-election" && s.Name != "workload-leader-election" {
			continue
		}
		rule := s.Spec.Rules[0].ResourceRules
		if len(rule) != 1 || fmt.Sprint(rule[0].Verbs, rule[0].APIGroups, rule[0].Resources, rule[0].Namespaces, rule[0].ClusterScope) != "[get create update] [coordination.k8s.io] [leases] [*] false" {
			t.Errorf("%s: %+v", s.Name, rule)
		}
	}
}

func TestMandatoryIsFixed(t *testing.T) {
	s := flowcontrol.MandatorySchemas()[1]
	s.Spec.MatchingPrecedence = 9000
	if errs := flowcontrol.FlowSchema.Validate(context.Background(), s); len(errs) != 1 {
		t.Errorf("a changed catch-all: %v", errs)
	}
}
