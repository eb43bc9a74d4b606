package scheduling_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the group scheduling.k8s.io.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "groups-priorityclass")
}

// TestReleased replays what stock servers of later releases answered about Workloads and PodGroups.
func TestReleased(t *testing.T) {
	servertest.Released(t, "later-workloads")
}
