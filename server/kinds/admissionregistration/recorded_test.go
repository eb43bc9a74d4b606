package admissionregistration_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about policies and webhooks of admission.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "groups-vap-*", "groups-webhook-*", "beta-vap-*", "beta-map-*")
}
