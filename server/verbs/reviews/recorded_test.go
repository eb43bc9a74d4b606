package reviews_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays a stock server's answers about access reviews.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "beta-selfsubjectreview")
}
