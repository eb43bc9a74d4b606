package storagemigration_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the group storagemigration.k8s.io.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "beta-storagemigration-*")
}

// TestReleased replays what stock servers of later releases answered about StorageVersionMigrations.
func TestReleased(t *testing.T) {
	servertest.Released(t, "later-storageversionmigrations")
}
