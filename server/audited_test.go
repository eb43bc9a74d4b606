package server_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestAudited holds the events of requests against those that a stock server is documented to record.
func TestAudited(t *testing.T) { servertest.Audited(t, "*") }
