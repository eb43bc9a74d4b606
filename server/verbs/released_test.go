package verbs_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestReleased replays what stock servers of later releases answered to odd requests: resource versions, numbers and
// addresses in other spellings, impersonation, connections to pods, shards, one grace period after another, and
// all versions of kinds at once.
func TestReleased(t *testing.T) {
	servertest.Released(t, "behaviour/*")
}
