package apiserverinternal_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the group internal.apiserver.k8s.io.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "beta-storageversion*")
}
