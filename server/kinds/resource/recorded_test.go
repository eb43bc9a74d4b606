package resource_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the group resource.k8s.io.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "beta-dra-[cdst]*")
}
