//go:build unix

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFileHas: a text is found wherever it is in a file, also across two pieces of it.
func TestFileHas(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, at := range []int{0, 1, piece - 3, piece, 2*piece - 1, 2*piece + 7} {
		text := strings.Repeat("x", at) + "secret" + strings.Repeat("y", 10)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := fileHas(path, []string{"another text", "secret"}); err != nil || !found {
			t.Errorf("at %d: %v, %v", at, found, err)
		}
		if found, err := fileHas(path, []string{"another text", "secrets"}); err != nil || found {
			t.Errorf("what is not there, at %d: %v, %v", at, found, err)
		}
	}
}
