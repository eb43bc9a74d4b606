package certificates_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the group certificates.k8s.io.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "groups-csr*", "beta-ctb*")
}

// TestReleased replays what stock servers of later releases answered about PodCertificateRequests.
func TestReleased(t *testing.T) {
	servertest.Released(t, "later-podcertificaterequests")
}
