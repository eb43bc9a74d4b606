package storageversions_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/controllers/storageversions"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestStorageVersionsOfServers: the entry of a server goes when its Lease does, and that of a running
// one stays.
func TestStorageVersionsOfServers(t *testing.T) {
	const objects = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions"
	const object = objects + "/apps.deployments"
	const identities = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	var catalogue *kinds.Catalogue
	s := servertest.Start(t, servertest.Complete(t, "--runtime-config=api/all"), servertest.Idle, func(c *server.Config) { catalogue = c.Catalogue })
	v := storageversions.Publisher{Base: reconcile.Base{API: s.Server, Cache: s.Cache, Log: controllertest.DiscardLog}, Catalogue: catalogue, Host: "own"}
	own := storageversions.ServerName("own")
	published := func() (ids []string, common string) {
		t.Helper()
		var got apiserverinternalv1alpha1.StorageVersion
		if err := json.Unmarshal(s.Must("GET", object, ""), &got); err != nil {
			t.Fatal(err)
		}
		for _, entry := range got.Status.StorageVersions {
			ids = append(ids, entry.APIServerID)
		}
		if got.Status.CommonEncodingVersion != nil {
			common = *got.Status.CommonEncodingVersion
		}
		return ids, common
	}
	update := func() {
		t.Helper()
		if err := v.Update(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ids, common := published(); !slices.Equal(ids, []string{own}) || common != "apps/v1" {
			t.Fatal(ids, common)
		}
	}
	update()
	s.Must("GET", identities+"/"+own, "")
	// The entry of a former release under this server's name.
	s.Must("PATCH", object+"/status", `[{"op":"replace","path":"/status/storageVersions/0","value":{"apiServerID":"`+own+`","encodingVersion":"apps/v1beta2","decodableVersions":["apps/v1beta2"]}},
		{"op":"replace","path":"/status/commonEncodingVersion","value":"apps/v1beta2"}]`, "Content-Type", "application/json-patch+json")
	update()
	lease := func(name, label string) {
		s.Must("POST", identities, `{"metadata":{"name":"`+name+`","labels":{"apiserver.kubernetes.io/identity":"`+label+`"}},"spec":{"leaseDurationSeconds":3600,"renewTime":"`+time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")+`"}}`)
	}
	lease("apiserver-there", "kube-apiserver")
	lease("apiserver-other", "another-apiserver")
	entry := func(id string) string {
		return `{"apiServerID":"` + id + `","encodingVersion":"apps/v2","decodableVersions":["apps/v2"]}`
	}
	add := func(id string) string {
		return `{"op":"add","path":"/status/storageVersions/-","value":` + entry(id) + `}`
	}
	s.Must("PATCH", object+"/status", "["+add("apiserver-there")+","+add("apiserver-other")+","+add("apiserver-gone")+`,{"op":"remove","path":"/status/commonEncodingVersion"}]`, "Content-Type", "application/json-patch+json")

	// The controller finds unclaimed ones when it begins, and when one is written.
	alone := func(name string) {
		s.Must("POST", objects, `{"metadata":{"name":"`+name+`"},"spec":{}}`)
		s.Must("PATCH", objects+"/"+name+"/status", `{"status":{"storageVersions":[`+entry("apiserver-gone")+`],"commonEncodingVersion":"apps/v2"}}`, "Content-Type", "application/merge-patch+json")
	}
	gone := func(name string) func() bool {
		return func() bool { return s.Do("GET", objects+"/"+name, "").Code == http.StatusNotFound }
	}
	alone("example.before")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&storageversions.Collector{Base: reconcile.Base{API: s.Server, Cache: s.Cache, Log: controllertest.DiscardLog}}).Run(ctx)
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	becomes := func(common string, want ...string) {
		t.Helper()
		servertest.Eventually(t, func() bool { ids, c := published(); return slices.Equal(ids, want) && c == common })
	}
	servertest.Eventually(t, gone("example.before"))
	becomes("", own, "apiserver-there")
	alone("example.after")
	servertest.Eventually(t, gone("example.after"))
	s.Must("DELETE", identities+"/apiserver-other", "")
	s.Must("DELETE", identities+"/apiserver-there", "")
	becomes("apps/v1", own)
	var last apiserverinternalv1alpha1.StorageVersion
	if err := json.Unmarshal(s.Must("GET", object, ""), &last); err != nil {
		t.Fatal(err)
	}
	if c := last.Status.Conditions; len(c) != 1 || c[0].Status != apiserverinternalv1alpha1.ConditionTrue {
		t.Error(c)
	}
}

// TestStorageVersionsRest: with Base.Debounce set, the controller leaves a StorageVersion alone
// for that long after its last change.
func TestStorageVersionsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const storage = "storageversions.internal.apiserver.k8s.io"
		c := controllertest.NewCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- (&storageversions.Collector{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog, Debounce: 2 * time.Second}}).Run(ctx)
		}()
		write := func() {
			c.Set(storage, "", "example.things", map[string]any{"status": map[string]any{"storageVersions": []any{map[string]any{"apiServerID": "gone", "encodingVersion": "v1"}}}})
		}
		write()
		time.Sleep(1500 * time.Millisecond)
		write()
		time.Sleep(1500 * time.Millisecond)
		if c.Cache.Get(storage, "", "example.things") == nil {
			t.Error("it went at once")
		}
		time.Sleep(2 * time.Second)
		if c.Cache.Get(storage, "", "example.things") != nil {
			t.Error("it stays")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
