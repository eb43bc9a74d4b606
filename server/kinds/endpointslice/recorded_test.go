package endpointslice_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the group discovery.k8s.io.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "groups-endpointslice")
}

// TestReleased replays what stock servers of later releases answered about these kinds.
func TestReleased(t *testing.T) {
	servertest.Released(t, "kinds/endpointslice-*")
}
