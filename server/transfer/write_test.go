package transfer_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/transfer"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/foreign"
)

func row(resource, namespace, name, value string) sqlstore.Row {
	return sqlstore.Row{Key: sqlstore.Key{Resource: resource, Namespace: namespace, Name: name}, Revision: 7, Created: 5, Value: []byte(value)}
}

// TestEntryKeys: each row has the key that a stock server looks it up by.
func TestEntryKeys(t *testing.T) {
	for _, c := range []struct{ resource, namespace, name, value, prefix, want string }{
		{"services", "a", "x", `{"kind":"Service","apiVersion":"v1"}`, "", "/registry/services/specs/a/x"},
		{"endpoints", "a", "x", `{"kind":"Endpoints","apiVersion":"v1"}`, "", "/registry/services/endpoints/a/x"},
		{"nodes", "", "x", `{"kind":"Node","apiVersion":"v1"}`, "", "/registry/minions/x"},
		{"replicationcontrollers", "a", "x", `{"kind":"ReplicationController","apiVersion":"v1"}`, "", "/registry/controllers/a/x"},
		{"ingresses.networking.k8s.io", "a", "x", `{"kind":"Ingress","apiVersion":"networking.k8s.io/v1"}`, "", "/registry/ingress/a/x"},
		{"clusterroles.rbac.authorization.k8s.io", "", "system:x", `{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1"}`, "", "/registry/clusterroles/system:x"},
		{"apiservices.apiregistration.k8s.io", "", "v1.apps", `{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1"}`, "", "/registry/apiregistration.k8s.io/apiservices/v1.apps"},
		{"customresourcedefinitions.apiextensions.k8s.io", "", "ws.e.io", `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1"}`, "", "/registry/apiextensions.k8s.io/customresourcedefinitions/ws.e.io"},
		{"ws.e.io", "a", "x", `{"kind":"W","apiVersion":"e.io/v1"}`, "", "/registry/e.io/ws/a/x"},
		{"ws.e.io", "", "x", `{"kind":"W","apiVersion":"e.io/v1"}`, "cluster-1/", "/cluster-1/e.io/ws/x"},
	} {
		e, ok, err := transfer.NewWriter(c.prefix).Entry(row(c.resource, c.namespace, c.name, c.value))
		if err != nil || !ok || e.Key != c.want || e.ModRevision != 7 || e.CreateRevision != 5 {
			t.Errorf("%s %s/%s: %+v, %v, %v, want %s", c.resource, c.namespace, c.name, e, ok, err, c.want)
		}
	}
}

// TestEntryForms: built-in kinds are Protobuf, except those that a stock server stores as JSON.
func TestEntryForms(t *testing.T) {
	w := transfer.NewWriter("")
	e, _, err := w.Entry(row("configmaps", "a", "x", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"a","uid":"u"},"data":{"k":"v"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var cm corev1.ConfigMap
	if _, err := (protobuf.Codec{}).Decode(e.Value, &cm, codecs.Ignore); err != nil || cm.Data["k"] != "v" || cm.UID != "u" || cm.Kind != "ConfigMap" || cm.APIVersion != "v1" {
		t.Errorf("%v, %v", cm, err)
	}
	const thing = `{"apiVersion":"e.io/v1","kind":"W","metadata":{"name":"x"}}`
	if e, _, err := w.Entry(row("ws.e.io", "", "x", thing)); err != nil || string(e.Value) != thing+"\n" {
		t.Errorf("%q, %v", e.Value, err)
	}
	if e, ok, err := w.Entry(row("~serviceips", "", "10.0.0.1", `{"owner":"a/x"}`)); ok || err != nil {
		t.Errorf("a claim became %q, %v", e.Key, err)
	}
}

// TestEntryRefuses: the error about a row that no key can name or no value can hold has the key.
func TestEntryRefuses(t *testing.T) {
	w := transfer.NewWriter("")
	flipped := row("configmaps", "a", "x", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"a"}}`)
	flipped.Damaged = sqlstore.ChecksumError(1, 2)
	for text, r := range map[string]sqlstore.Row{
		"the row has the checksum": flipped,
		"cannot be read: unexpect": row("ws.e.io", "a", "x", `{"kind":"W"`),
		"number into Go value of":  row("ws.e.io", "a", "y", `5`),
		"cannot be read: it is nu": row("ws.e.io", "a", "z", `null`),
		"unlike its resource":      row("nodes", "a", "x", `{}`),
		"no key of etcd can hold":  row("configmaps", "a", "x/y", `{}`),
		"no resource that is":      row("nonsense", "a", "x", `{}`),
		"was to be decrypted":      row("secrets", "a", "x", sqlstore.SealHead("aesgcm", "k")+"..."),
		"cannot be read":           row("secrets", "a", "x", `{"kind":`),
		"cannot be read: json: ca": row("secrets", "a", "x", `{"kind":"Secret","apiVersion":"v1","type":5}`),
		"at most 4096":             row("ws.e.io", "", strings.Repeat("x", foreign.MaxKey), `{}`),
	} {
		_, ok, err := w.Entry(r)
		var keyed *foreign.KeyError
		if ok || !errors.As(err, &keyed) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
