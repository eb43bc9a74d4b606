package rbac_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the group rbac.authorization.k8s.io.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "auth-rbac-*role*", "auth-rbac-aggregation", "auth-rbac-names", "beta-*roles")
}
