package resource_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the group resource.k8s.io.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "beta-dra-[cdst]*")
}

// TestLater replays what a stock server of release 1.36 answered about kinds and versions that came after 1.32.
func TestLater(t *testing.T) {
	servertest.Released(t, "kinds/devices-*", "later-[cdg]*", "later-poolstatusrequests", "later-slices", "later-versions")
}
