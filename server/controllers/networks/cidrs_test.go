package networks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/networks"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/servertest"
)

// ranged is a server whose ServiceCIDRs are looked after. Its clock can be set forward.
type ranged struct {
	*servertest.Server
	t     *testing.T
	ahead atomic.Int64
}

func newRanged(t *testing.T) *ranged {
	s := &ranged{t: t, Server: servertest.Start(t, servertest.Complete(t, "--runtime-config=networking.k8s.io/v1beta1", "--feature-gates=MultiCIDRServiceAllocator=true"), servertest.Idle)}
	c := networks.CIDRs{Base: reconcile.Base{
		API: s.Server, Cache: s.Cache, Log: controllertest.DiscardLog, Retry: time.Millisecond,
		Clock: func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) },
	}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return s
}

func (s *ranged) define(name string, cidrs ...string) {
	s.t.Helper()
	list, err := json.Marshal(cidrs)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Must("POST", networksPath, fmt.Sprintf(`{"metadata":{"name":%q,"finalizers":["example.com/other"]},"spec":{"cidrs":%s}}`, name, list))
	s.awaitReady(name, `True "" "Kubernetes Service CIDR is ready" held`)
	s.Must("PATCH", networksPath+"/"+name, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/other"]}}`, "Content-Type", "application/strategic-merge-patch+json")
}

// awaitReady waits until a ServiceCIDR has the wanted condition; "": until it is gone.
func (s *ranged) awaitReady(name, want string) {
	s.t.Helper()
	got := ""
	defer func() {
		if s.t.Failed() {
			s.t.Logf("%s has %s, want %s", name, got, want)
		}
	}()
	servertest.Eventually(s.t, func() bool {
		got = ""
		w := s.Do("GET", networksPath+"/"+name, "")
		if w.Code == 404 {
			return want == ""
		}
		var c networkingv1.ServiceCIDR
		if err := json.Unmarshal(w.Body.Bytes(), &c); err != nil {
			s.t.Fatal(err)
		}
		for _, condition := range c.Status.Conditions {
			got += fmt.Sprintf("%s %q %q", condition.Status, condition.Reason, condition.Message)
		}
		if slices.Contains(c.Finalizers, "networking.k8s.io/service-cidr-finalizer") {
			got += " held"
		}
		return got == want
	})
}

func (s *ranged) service(name, ip string) (code int, answer string) {
	s.t.Helper()
	w := s.Do("POST", "/api/v1/namespaces/default/services", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"clusterIP":%q,"ports":[{"port":1}]}}`, name, ip))
	return w.Code, w.Body.String()
}

// TestServiceCIDRs: one that is there is ready and held; one that is deleted waits for the
// Services that have addresses of no other, and gives no new ones.
func TestServiceCIDRs(t *testing.T) {
	const waiting = `False "Terminating" "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR" held`
	s := newRanged(t)
	s.awaitReady("kubernetes", `True "" "Kubernetes default Service CIDR is ready" held`)
	s.define("extra", "10.50.0.0/24", "2001:db8:50::/112")
	if code, answer := s.service("one", "10.50.0.7"); code != 201 {
		t.Fatal(answer)
	}
	s.Must("DELETE", networksPath+"/extra", "")
	s.awaitReady("extra", waiting)
	if code, answer := s.service("late", "10.50.0.8"); code != 422 || !strings.Contains(answer, "the provided network does not match the current range") {
		t.Errorf("%d %s", code, answer)
	}
	s.ahead.Store(int64(time.Hour))
	s.Must("POST", addresses, `{"metadata":{"name":"10.50.0.9"},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"x"}}}`) // of no Service
	s.define("narrow", "10.50.0.0/29")                                                                                                           // covers the address
	s.awaitReady("extra", "")
	s.Must("DELETE", networksPath+"/narrow", "")
	s.awaitReady("narrow", waiting)
	s.Must("DELETE", "/api/v1/namespaces/default/services/one", "")
	s.awaitReady("narrow", "")
}

// TestServiceCIDRWaits: an unused one stays until every server knows that it is deleted.
func TestServiceCIDRWaits(t *testing.T) {
	s := newRanged(t)
	s.ahead.Store(-int64(time.Hour))
	s.define("first", "10.50.0.0/24")
	s.define("second", "10.51.0.0/24")
	s.Must("DELETE", networksPath+"/first", "")
	s.Must("DELETE", networksPath+"/second", "")
	s.define("third", "10.52.0.0/24") // the deleted ones have been processed
	s.awaitReady("first", `True "" "Kubernetes Service CIDR is ready" held`)
	s.awaitReady("second", `True "" "Kubernetes Service CIDR is ready" held`)
}
