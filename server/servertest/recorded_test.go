package servertest_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays the scenarios that concern no single group of kinds: access, effects of requests, flow
// control, and the protocol.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "agg-[dsv]*", "auth-[^bnrt]*", "auth-tokenrequest", "auth-rbac-apply", "auth-rbac-escalate-bind", "auth-rbac-escalation-bindings", "auth-rbac-eval-*", "auth-rbac-resource-names", "auth-rbac-watch", "beta-off-admission", "effect-[^a]*", "effect-aggregated-role", "flow-[^l]*", "protocol-ac*", "protocol-au*", "protocol-[b-egho]*", "protocol-fieldvalidation-[jy]*", "protocol-finalizers", "protocol-flow-[ghil]*", "protocol-list-c*", "protocol-list-versions-limit", "protocol-namespace-*", "protocol-noop-*", "protocol-partial-*", "protocol-p[ru]*", "protocol-[qst]*", "protocol-version-*", "protocol-w*")
}
