package apps_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the group apps.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "groups-deploy-*", "groups-daemonset-*", "groups-replicaset-*", "groups-statefulset-*", "groups-controllerrevision", "groups-scale-*")
}

// TestReleased replays what stock servers of later releases answered about these kinds.
func TestReleased(t *testing.T) {
	servertest.Released(t, "kinds/apps-*")
}
