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
	s.EndWith(t)
	return s
}

// EndWith ends a server with a test, and logs the output of the server if the test failed and
// ROWLOCK_LOGS asks for that.
func (s *Server) EndWith(t testing.TB) {
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() && os.Getenv("ROWLOCK_LOGS") != "" {
			t.Logf("server log:\n%s", s.Log())
		}
	})
}
