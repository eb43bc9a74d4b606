package policy_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the group policy.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "groups-pdb", "groups-eviction")
}
