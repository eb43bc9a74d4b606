package kinds_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about kinds of several groups, custom ones among them.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "groups-discovery-*", "groups-kubectl-flows", "groups-rich-objects", "groups-crd-operator", "protocol-names-*", "protocol-versions-hpa", "protocol-list-versions", "protocol-compared-*", "groups-compared-*")
}
