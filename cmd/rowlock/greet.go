package main

import (
	"fmt"
	"io"
	"runtime"

	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/rowlock/rowlock/server/datadir"
)

// greet prints what a person needs next.
func (o *serveOptions) greet(out io.Writer, n *network, dir *datadir.Dir, url string) {
	fmt.Fprintf(out, "rowlock %s (Kubernetes %s) listens on https://%s\n", version, servedRelease, n.local)
	if inMemory(url) {
		fmt.Fprintln(out, "store: memory; nothing is kept when the server ends")
	} else {
		fmt.Fprintf(out, "store: %s\n", publicURL(url))
	}
	if dir.Shared {
		fmt.Fprintf(out, "another server uses this data directory, and %s stays in its name; for this one: kubectl --kubeconfig %[1]s --server https://%s\n", dir.AdminKubeconfig, n.local)
		return
	}
	fmt.Fprintf(out, "export KUBECONFIG=%s\n", dir.AdminKubeconfig)
}

func versionInfo() apiversion.Info {
	return apiversion.Info{
		Major: "1", Minor: "32", GitVersion: "v1.32.13+rowlock." + version, GitTreeState: "clean", BuildDate: "1970-01-01T00:00:00Z",
		GoVersion: runtime.Version(), Compiler: "gc", Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}
