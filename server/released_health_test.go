package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestHealthChecksOfReleases: the steps of the start that a release or a gate brings are health checks there, and only
// there. Kubernetes' own e2e cases look for them by name.
func TestHealthChecksOfReleases(t *testing.T) {
	const readiness, networks, identity = "storage-readiness", "start-kubernetes-service-cidr-controller", "start-kube-apiserver-identity-lease-controller"
	for _, c := range []struct {
		flags []string
		has   map[string]bool
	}{
		{[]string{"--emulated-version=1.32"}, map[string]bool{readiness: false, networks: false, identity: true}},
		{[]string{"--emulated-version=1.32", "--feature-gates=WatchCacheInitializationPostStartHook=true,APIServerIdentity=false"}, map[string]bool{readiness: true, networks: false, identity: false}},
		{[]string{"--emulated-version=1.35"}, map[string]bool{readiness: false, networks: true, identity: true}},
		{[]string{"--emulated-version=1.36"}, map[string]bool{readiness: true, networks: true, identity: true}},
	} {
		t.Run(fmt.Sprint(c.flags), func(t *testing.T) {
			t.Parallel()
			s := servertest.Start(t, servertest.Complete(t, c.flags...))
			for _, path := range []string{"/healthz", "/livez", "/readyz"} {
				all := string(s.Must("GET", path+"?verbose=1", ""))
				for name, want := range c.has {
					if got := strings.Contains(all, "[+]poststarthook/"+name+" ok\n"); got != want {
						t.Errorf("%s has %s: %v, want %v\n%s", path, name, got, want, all)
					}
				}
			}
		})
	}
}
