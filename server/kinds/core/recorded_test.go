package core_test

import (
	"testing"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about the core group but for pods, and about admission.
func TestRecorded(t *testing.T) {
	// Who recorded had no controller of quotas beside the server, and said itself what is used. How
	// soon ours counts depends on how busy the machine is.
	uncounted := func(c *server.Config) {
		c.Controllers.Runs = func(name string) bool { return name != "resourcequota" }
	}
	servertest.RecordedBy(t, uncounted, "beta-off-pvc", "beta-pvc-beta", "beta-svc-traffic", "core-[^p]*", "core-p[uv]*")
}
