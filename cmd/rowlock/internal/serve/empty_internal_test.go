package serve

import (
	"io"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/release"
)

// TestEmptyLists: a flag without a value turns no check off. It means the default, as on a
// stock server, or is refused. Package auth has the same test of its flags.
func TestEmptyLists(t *testing.T) {
	for flags, want := range map[string]string{
		"":                             "",
		"--admission-control=":         "--admission-control names no admission plugin",
		"--enable-admission-plugins=":  "",
		"--disable-admission-plugins=": "",
		"--enable-admission-plugins=,": `plugin "" is unknown`,
	} {
		o := &options{}
		cmd := newCommand(o)
		cmd.SetErr(io.Discard)
		if err := cmd.ParseFlags(strings.Fields(flags)); err != nil {
			t.Fatalf("%s: %v", flags, err)
		}
		_, err := o.admission.build(release.V132)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
	}
}
