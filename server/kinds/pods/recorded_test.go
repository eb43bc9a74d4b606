package pods_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about pods and their templates.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "beta-pod-*", "beta-off-pod-*", "beta-dra-pod-*", "core-pod*")
}
