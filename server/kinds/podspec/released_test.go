package podspec_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestReleased replays what stock servers of later releases answered about Pods.
func TestReleased(t *testing.T) {
	servertest.Released(t, "pods/*")
}
