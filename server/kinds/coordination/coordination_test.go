package coordination_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/kinds/coordination"
)

// spec returns a spec with a strategy and a preferred holder; "-" is none.
func spec(strategy, preferred string) (s coordinationv1.LeaseSpec) {
	if strategy != "-" {
		s.Strategy = ptr.To(coordinationv1.CoordinatedLeaseStrategy(strategy))
	}
	if preferred != "-" {
		s.PreferredHolder = &preferred
	}
	return s
}

// Fields of elections stay where the gate is on, and else where the old Lease had them.
func TestFieldsOfElections(t *testing.T) {
	const mine = "example.com/mine"
	for _, c := range []struct {
		on              bool
		old, sent, want coordinationv1.LeaseSpec
	}{
		{true, spec("-", "-"), spec(mine, "a"), spec(mine, "a")},
		{false, spec("-", "-"), spec(mine, "a"), spec("-", "-")},
		{false, spec(mine, "-"), spec("example.com/other", "a"), spec("example.com/other", "-")},
		{false, spec(mine, "b"), spec("-", "a"), spec("-", "a")},
		{false, spec("-", "b"), spec(mine, "-"), spec("-", "-")},
	} {
		s := coordination.Lease(func(string) bool { return c.on })
		old, lease := &coordinationv1.Lease{Spec: c.old}, &coordinationv1.Lease{Spec: c.sent}
		s.PrepareForUpdate(context.Background(), lease, old)
		if d := cmp.Diff(c.want, lease.Spec); d != "" {
			t.Errorf("%+v after %+v: %s", c.sent, c.old, d)
		}
	}
}

func TestPreferredHolderNeedsAStrategy(t *testing.T) {
	s := coordination.Lease(func(string) bool { return true })
	for want, one := range map[string]coordinationv1.LeaseSpec{
		"": spec("OldestEmulationVersion", "a"),
		"spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined": spec("-", "a"),
		"[spec.strategy.strategy: Unsupported value: \"\": supported values: \"OldestEmulationVersion\", " +
			"spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined]": spec("", "a"),
	} {
		got := ""
		if errs := s.Validate(context.Background(), &coordinationv1.Lease{Spec: one}); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Candidates are called as holders call themselves.
func TestNamesOfCandidates(t *testing.T) {
	for name, fault := range map[string]string{
		"host_b1c5": "", "Host.1": "", "a-": "",
		"..a": "must not start with '..'", "a b": "a valid config key must consist of", strings.Repeat("a", 254): "must be no more than 253 characters",
	} {
		got := strings.Join(coordination.LeaseCandidate.ValidateName(name, false), "; ")
		if fault == "" && got != "" || !strings.Contains(got, fault) {
			t.Errorf("%q: %q, want %q", name, got, fault)
		}
	}
}
