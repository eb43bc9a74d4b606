package pods_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about pods and their templates.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "beta-pod-*", "beta-off-pod-*", "beta-dra-pod-*", "core-pod*")
}

// TestReleased replays what a stock server answered that emulates later releases, with gates on and off: the pods
// that come with each field, resizes, statuses and the rest of what these releases brought.
func TestReleased(t *testing.T) {
	servertest.Released(t, "pods/*")
}
