package flowcontrol_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
	"github.com/rowlock/rowlock/server/release"
)

// TestFixed holds the objects that are there from the start against the rules.
func TestFixed(t *testing.T) {
	ctx := context.Background()
	levels := map[string]bool{}
	for _, l := range append(flowcontrol.MandatoryLevels(), flowcontrol.SuggestedLevels()...) {
		levels[l.Name] = true
		flowcontrol.PriorityLevelConfiguration(off).Default(l)
		if errs := flowcontrol.PriorityLevelConfiguration(off).Validate(ctx, l); len(errs) > 0 {
			t.Errorf("%s: %v", l.Name, errs)
		}
	}
	for _, s := range append(flowcontrol.MandatorySchemas(), flowcontrol.SuggestedSchemas(release.Default)...) {
		flowcontrol.FlowSchema(off).Default(s)
		if errs := flowcontrol.FlowSchema(off).Validate(ctx, s); len(errs) > 0 {
			t.Errorf("%s: %v", s.Name, errs)
		}
		if level := s.Spec.PriorityLevelConfiguration.Name; !levels[level] {
			t.Errorf("%s names level %q, which is missing", s.Name, level)
		}
	}
}

// Leader election of the system is not of one namespace alone.
func TestLeaderElection(t *testing.T) {
	for _, s := range flowcontrol.SuggestedSchemas(release.Default) {
		if s.Name != "system-leader-election" && s.Name != "workload-leader-election" {
			continue
		}
		got, want := "", "[get create update] [coordination.k8s.io] [leases] [*] false;"
		if s.Name == "workload-leader-election" { // others still use the older kinds
			want = "[get create update] [] [endpoints configmaps] [*] false;" + want
		}
		for _, rule := range s.Spec.Rules[0].ResourceRules {
			got += fmt.Sprint(rule.Verbs, rule.APIGroups, rule.Resources, rule.Namespaces, rule.ClusterScope) + ";"
		}
		if got != want {
			t.Errorf("%s: %s", s.Name, got)
		}
	}
}

func TestMandatoryIsFixed(t *testing.T) {
	s := flowcontrol.MandatorySchemas()[1]
	s.Spec.MatchingPrecedence = 9000
	if errs := flowcontrol.FlowSchema(off).Validate(context.Background(), s); len(errs) != 1 {
		t.Errorf("a changed catch-all: %v", errs)
	}
	for _, l := range flowcontrol.MandatoryLevels() {
		flowcontrol.PriorityLevelConfiguration(off).Default(l)
		want := "spec of 'catch-all' must"
		if l.Name == "exempt" {
			want = "spec of 'exempt' except the 'spec.exempt' field must"
			l.Spec.Exempt = nil
		}
		if errs := flowcontrol.PriorityLevelConfiguration(off).Validate(t.Context(), l); len(errs) > 0 {
			t.Errorf("%s as it may be: %v", l.Name, errs)
		}
		l.Spec.Type = "Other"
		if errs := flowcontrol.PriorityLevelConfiguration(off).Validate(t.Context(), l); !strings.Contains(fmt.Sprint(errs), want) {
			t.Errorf("a changed %s: %v", l.Name, errs)
		}
	}
}

// off enables no gate, in release 1.32.
func off(string) bool { return false }
