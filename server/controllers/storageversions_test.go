package controllers_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/controllers"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestStorageVersionsOfServers: what a server said goes when its Lease has ended or is gone,
// and what one said that is there stays.
func TestStorageVersionsOfServers(t *testing.T) {
	const object = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions/apps.deployments"
	var catalogue *kinds.Catalogue
	s := servertest.Start(t, servertest.Complete(t, "--runtime-config=api/all"), servertest.Idle, func(c *server.Config) { catalogue = c.Catalogue })
	v := controllers.StorageVersions{API: s.Server, Catalogue: catalogue, Log: silent, Clock: time.Now, Server: "apiserver-own"}
	said := func() (ids []string, common string) {
		t.Helper()
		if err := v.Update(t.Context()); err != nil {
			t.Fatal(err)
		}
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
	if ids, common := said(); !slices.Equal(ids, []string{"apiserver-own"}) || common != "apps/v1" {
		t.Fatal(ids, common)
	}
	// What a former release said under this server's name.
	s.Must("PATCH", object+"/status", `[{"op":"replace","path":"/status/storageVersions/0","value":{"apiServerID":"apiserver-own","encodingVersion":"apps/v1beta2","decodableVersions":["apps/v1beta2"]}},
		{"op":"replace","path":"/status/commonEncodingVersion","value":"apps/v1beta2"}]`, "Content-Type", "application/json-patch+json")
	if ids, common := said(); !slices.Equal(ids, []string{"apiserver-own"}) || common != "apps/v1" {
		t.Error(ids, common)
	}
	lease := func(name, renewed string) {
		s.Must("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
			`{"metadata":{"name":"`+name+`","labels":{"apiserver.kubernetes.io/identity":"kube-apiserver"}},"spec":{"leaseDurationSeconds":3600,"renewTime":"`+renewed+`"}}`)
	}
	lease("apiserver-there", time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
	lease("apiserver-ended", "2020-01-01T00:00:00.000000Z")
	entry := func(id string) string {
		return `{"op":"add","path":"/status/storageVersions/-","value":{"apiServerID":"` + id + `","encodingVersion":"apps/v2","decodableVersions":["apps/v2"]}}`
	}
	s.Must("PATCH", object+"/status", "["+entry("apiserver-there")+","+entry("apiserver-ended")+","+entry("apiserver-gone")+`,{"op":"remove","path":"/status/commonEncodingVersion"}]`, "Content-Type", "application/json-patch+json")
	if ids, common := said(); !slices.Equal(ids, []string{"apiserver-own", "apiserver-there"}) || common != "" {
		t.Error(ids, common)
	}
	s.Must("DELETE", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/apiserver-there", "")
	if ids, common := said(); !slices.Equal(ids, []string{"apiserver-own"}) || common != "apps/v1" {
		t.Error(ids, common)
	}
}
