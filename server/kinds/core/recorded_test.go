package core_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the core group but for pods, and about admission.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "beta-off-pvc", "beta-pvc-beta", "beta-svc-traffic", "core-[^p]*", "core-p[uv]*")
}
