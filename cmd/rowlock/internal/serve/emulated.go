package serve

import (
	"fmt"
	"strings"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
)

// emulated checks --emulated-version, VERSION or COMPONENT=VERSION: there is one release to
// be, and a command line that asks for it is taken.
func emulated(versions []string) error {
	for _, text := range versions {
		component, version, named := strings.Cut(text, "=")
		if !named {
			component, version = "kube", text
		}
		if component != "kube" {
			return fmt.Errorf("--emulated-version: component not registered: %s", component)
		}
		if v := strings.TrimPrefix(version, "v"); v != program.Release && !strings.HasPrefix(v, program.Release+".") {
			return fmt.Errorf("--emulated-version %s: this server is release %s and emulates no other", text, program.Release)
		}
	}
	return nil
}
