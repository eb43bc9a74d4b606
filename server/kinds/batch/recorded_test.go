package batch_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the group batch.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "beta-job-*", "groups-job-*", "groups-cronjob-*", "groups-kubectl-job")
}
