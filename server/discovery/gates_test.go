package discovery_test

import (
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestGatesOff: gates that are turned off take away what they name.
func TestGatesOff(t *testing.T) {
	const (
		watch   = "/api/v1/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
		refusal = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
	)
	s := servertest.Start(t, servertest.Complete(t, "--feature-gates=WatchList=false,StorageVersionHash=false"), servertest.Idle)
	if w := s.Do("GET", "/apis/apps/v1", ""); w.Code != 200 || strings.Contains(w.Body.String(), "storageVersionHash") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := s.Do("GET", watch, ""); w.Code != 422 || !strings.Contains(w.Body.String(), refusal) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestRemovedBeta: from 1.33 on, the aggregated document is served only in version v2, unless a gate enables v2beta1.
func TestRemovedBeta(t *testing.T) {
	const older, newer = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, c := range []struct {
		flags  []string
		accept string
		code   int
		as     string
	}{
		{nil, older, 200, older},
		{[]string{"--emulated-version=1.33"}, older, 406, "application/json"},
		{[]string{"--emulated-version=1.33"}, older + "," + newer, 200, newer},
		{[]string{"--emulated-version=1.33"}, older + ",application/json", 200, "application/json"},
		{[]string{"--emulated-version=1.34", "--feature-gates=AggregatedDiscoveryRemoveBetaType=false"}, older, 200, older},
	} {
		s := servertest.Start(t, servertest.Complete(t, c.flags...), servertest.Idle)
		w := s.Do("GET", "/apis", "", "Accept", c.accept)
		if as := w.Header().Get("Content-Type"); w.Code != c.code || as != c.as {
			t.Errorf("%q, Accept %s: %d %s, want %d %s", c.flags, c.accept, w.Code, as, c.code, c.as)
		}
	}
}
