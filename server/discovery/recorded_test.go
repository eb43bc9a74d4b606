package discovery_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about which versions are served.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "beta-discovery*", "beta-rc-*")
}
