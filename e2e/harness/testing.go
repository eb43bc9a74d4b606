package harness

import (
	"context"
	"os"
	"testing"
)

// StartT starts a server for a test and ends it with the test.
func StartT(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() && os.Getenv("ROWLOCK_LOGS") != "" {
			t.Logf("server log:\n%s", s.Log())
		}
	})
	return s
}
