package core_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the core group but for pods, and about admission.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "beta-off-pvc", "beta-pvc-beta", "beta-svc-traffic", "core-[^p]*", "core-p[uv]*")
}

// TestReleased replays what stock servers that emulate later releases answered about the core group but for pods, and
// about kinds whose packages have no such test: rules of addresses and names, warnings, quotas, and fields whose gates
// are on in some releases.
func TestReleased(t *testing.T) {
	servertest.Released(t, "kinds/core-*", "kinds/metadata-*", "kinds/quotas-*")
}
