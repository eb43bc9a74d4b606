package discovery_test

import (
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestGatesOff: gates that are turned off take away what they name.
func TestGatesOff(t *testing.T) {
	const (
		watch   = "/api/v1/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
		refusal = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
	)
	s := servertest.Start(t, servertest.Complete(t, "--feature-gates=WatchList=false,StorageVersionHash=false"), servertest.Idle)
	if w := s.Do("GET", "/apis/apps/v1", ""); w.Code != 200 || strings.Contains(w.Body.String(), "storageVersionHash") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := s.Do("GET", watch, ""); w.Code != 422 || !strings.Contains(w.Body.String(), refusal) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
