package storageversions_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/controllers/storageversions"
)

const (
	leaseObjects = "leases.coordination.k8s.io"
	// hostVM is the identity of a stock server on a host with the name vm.
	hostVM = "apiserver-wlv32tlttr4jl3gtroqexyxapa"
)

// identities runs the controllers of some servers on the host vm for a time.
func identities(t *testing.T, c *controllertest.Cluster, servers int, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for i := range servers {
		go func() {
			time.Sleep(time.Duration(i) * 3 * time.Second)
			ended <- (&storageversions.Identity{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog}, Host: "vm"}).Run(ctx)
		}()
	}
	time.Sleep(d)
	cancel()
	for range servers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// writesOf counts the writes that were made by a verb.
func writesOf(c *controllertest.Cluster, verb string) int {
	c.Lock()
	defer c.Unlock()
	n := 0
	for _, w := range c.Writes {
		if strings.HasPrefix(w, verb+" ") {
			n++
		}
	}
	return n
}

// TestIdentityLease: a server has the Lease that a stock server of its host has, renews it
// every ten seconds, and goes on with it after a restart.
func TestIdentityLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		begun := time.Now()
		identities(t, c, 1, 5*time.Second)
		var first coordinationv1.Lease
		if !c.Get(leaseObjects, "kube-system", hostVM, &first) {
			t.Fatal("there is no Lease")
		}
		if l := first.Labels; len(l) != 2 || l["apiserver.kubernetes.io/identity"] != "kube-apiserver" || l["kubernetes.io/hostname"] != "vm" {
			t.Error(l)
		}
		holder := ptr.Deref(first.Spec.HolderIdentity, "")
		if !strings.HasPrefix(holder, hostVM+"_") || len(holder) != len(hostVM)+37 || *first.Spec.LeaseDurationSeconds != 3600 || !first.Spec.RenewTime.Time.Equal(begun) {
			t.Error(holder, first.Spec)
		}
		again := time.Now()
		identities(t, c, 1, time.Minute)
		var later coordinationv1.Lease
		c.Get(leaseObjects, "kube-system", hostVM, &later)
		if since := again.Add(time.Minute).Sub(later.Spec.RenewTime.Time); since < 0 || since > 11*time.Second || *later.Spec.HolderIdentity != holder {
			t.Error(since, *later.Spec.HolderIdentity)
		}
		if n := writesOf(c, "PUT"); n != 6 {
			t.Errorf("%d renewals in a minute", n)
		}
		// Changes of a client are reverted.
		delete(later.Labels, "kubernetes.io/hostname")
		c.Set(leaseObjects, "kube-system", hostVM, &later)
		identities(t, c, 1, time.Second)
		if c.Get(leaseObjects, "kube-system", hostVM, &later); later.Labels["kubernetes.io/hostname"] != "vm" {
			t.Error(later.Labels)
		}
		c.Set(leaseObjects, "kube-system", hostVM, nil)
		identities(t, c, 1, time.Second)
		if !c.Get(leaseObjects, "kube-system", hostVM, &later) || *later.Spec.HolderIdentity == holder {
			t.Error("the Lease did not come back", later.Spec)
		}
	})
}

// TestIdentityOfServersOfOneHost: they have one Lease, which is renewed as often as that of
// one server.
func TestIdentityOfServersOfOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		identities(t, c, 3, 10*time.Minute)
		if n := c.Cache.Count(leaseObjects); n != 1 {
			t.Errorf("%d Leases", n)
		}
		if n := writesOf(c, "PUT"); n < 55 || n > 65 {
			t.Errorf("%d renewals in ten minutes", n)
		}
	})
}

// TestIdentityFails: a server that cannot write its Lease tries again soon, and each time
// after twice as long: after 1, 3 and 7 seconds.
func TestIdentityFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		c.Fail = 3
		identities(t, c, 1, 8*time.Second)
		if n := writesOf(c, "POST"); n != 4 || c.Cache.Count(leaseObjects) != 1 {
			t.Error(n)
		}
	})
}

// TestIdentityOfServersThatAreGone: their Leases go an hour after the last renewal, and
// nothing else does.
func TestIdentityOfServersThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		lease := func(namespace, name, label string, renewed time.Duration) {
			l := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"apiserver.kubernetes.io/identity": label}}}
			if renewed != 0 {
				l.Spec = coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: &metav1.MicroTime{Time: time.Now().Add(renewed)}}
			}
			c.Set(leaseObjects, namespace, name, &l)
		}
		lease("kube-system", "ended", "kube-apiserver", -time.Hour-time.Second)
		lease("kube-system", "empty", "kube-apiserver", 0)
		lease("kube-system", "there", "kube-apiserver", -time.Minute)
		lease("kube-system", "other", "other-apiserver", -2*time.Hour)
		lease("default", "elsewhere", "kube-apiserver", -2*time.Hour)
		left := func() (names []string) {
			for _, name := range []string{"kube-system/ended", "kube-system/empty", "kube-system/there", "kube-system/other", "default/elsewhere"} {
				if ns, n, _ := strings.Cut(name, "/"); c.Cache.Get(leaseObjects, ns, n) != nil {
					names = append(names, n)
				}
			}
			return names
		}
		identities(t, c, 1, 59*time.Minute)
		if got := left(); !slices.Equal(got, []string{"there", "other", "elsewhere"}) {
			t.Error(got)
		}
		identities(t, c, 1, 61*time.Minute)
		if got := left(); !slices.Equal(got, []string{"other", "elsewhere"}) {
			t.Error(got)
		}
		if c.Cache.Get(leaseObjects, "kube-system", hostVM) == nil {
			t.Error("the server's own Lease went")
		}
	})
}

// TestNamesOfHosts: a name that is no value of a label is left out of the labels, and names
// differ where hosts do.
func TestNamesOfHosts(t *testing.T) {
	c := controllertest.NewCluster(t)
	host := strings.Repeat("long.", 20) + "example"
	if err := (&storageversions.Identity{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog}, Host: host}).Renew(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	var l coordinationv1.Lease
	if !c.Get(leaseObjects, "kube-system", storageversions.ServerName(host), &l) || fmt.Sprint(l.Labels) != "map[apiserver.kubernetes.io/identity:kube-apiserver]" {
		t.Error(l.Labels)
	}
	if storageversions.ServerName("vm") != hostVM || storageversions.ServerName("vm2") == hostVM {
		t.Error(storageversions.ServerName("vm"))
	}
}
