package autoscaling_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the group autoscaling.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "beta-hpa-zero", "groups-hpa-*")
}
