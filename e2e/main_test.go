// Package e2e drives the built binary from outside, with raw HTTP, client-go and
// kubectl, on SQLite and on PostgreSQL.
package e2e

import (
	"os"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	stopPostgres()
	harness.Cleanup()
	os.Exit(code)
}
