package reviews_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about reviews of who asks.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "beta-selfsubjectreview")
}
