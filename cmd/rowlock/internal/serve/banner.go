package serve

import (
	"fmt"
	"io"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
	"github.com/rowlock/rowlock/server/datadir"
	"github.com/rowlock/rowlock/server/release"
)

// printBanner prints where the server listens, its store, and its kubeconfig.
func (o *options) printBanner(out io.Writer, v release.Version, n *network, dir *datadir.Dir, url string) {
	fmt.Fprintf(out, "rowlock %s (Kubernetes %s) listens on https://%s\n", program.Version, v, n.local)
	if database.IsInMemory(url) {
		fmt.Fprintln(out, "store: memory; nothing is kept when the server ends")
	} else {
		fmt.Fprintf(out, "store: %s\n", database.PublicURL(url))
	}
	if dir.Shared {
		fmt.Fprintf(out, "another server uses this data directory, and %s stays in its name; for this one: kubectl --kubeconfig %[1]s --server https://%s\n", dir.AdminKubeconfig, n.local)
		return
	}
	fmt.Fprintf(out, "export KUBECONFIG=%s\n", dir.AdminKubeconfig)
}
