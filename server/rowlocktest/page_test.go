package rowlocktest_test

import (
	"os"
	"strings"
	"testing"
)

// TestPage: the code on the page about testing is that of the tests of this package.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	if len(blocks) < 4 {
		t.Fatalf("only %d pieces of code", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "\n```")
		if !strings.Contains(string(code), block) {
			t.Errorf("example_test.go does not have\n%s", block)
		}
	}
}
