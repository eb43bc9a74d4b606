package apiextensions_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRecorded replays what a stock server answered about custom resources and their definitions.
func TestRecorded(t *testing.T) {
	servertest.Recorded(t, "groups-crd-*", "groups-cel-*")
}
