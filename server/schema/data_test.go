package schema_test

import (
	"os/exec"
	"testing"
)

// The generated files are those that go generate makes of the modules in go.mod.
func TestDataIsUpToDate(t *testing.T) {
	out, err := exec.Command("go", "run", "./gen", "-check", "data").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
