package access

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// TestPolicyIsUpToDate: the compressed policy is that of policy.json.
func TestPolicyIsUpToDate(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	zr, err := gzip.NewReader(strings.NewReader(policyFile))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("policy.json.gz is out of date: run go generate")
	}
}
