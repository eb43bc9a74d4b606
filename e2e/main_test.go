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
