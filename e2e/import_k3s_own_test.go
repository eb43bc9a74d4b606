package e2e

import (
	"fmt"

	"github.com/rowlock/rowlock/e2e/harness"
)

// k3sDefinition defines one of the kinds of k3s, as a server of 1.32 stores it.
const k3sDefinition = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{"name":"%[2]s.%[1]s","uid":"crd-%[2]s"},"spec":{"group":"%[1]s","version":"v1","names":{"plural":"%[2]s","singular":"%[4]s","kind":"%[3]s","listKind":"%[3]sList"},"scope":"Namespaced","validation":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","nullable":true,"x-kubernetes-preserve-unknown-fields":true},"status":{"type":"object","nullable":true,"x-kubernetes-preserve-unknown-fields":true}}}},"versions":[{"name":"v1","served":true,"storage":true}],"conversion":{"strategy":"None"},"preserveUnknownFields":false},"status":{"conditions":[{"type":"NamesAccepted","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"NoConflicts","message":"no conflicts found"},{"type":"Established","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"InitialNamesAccepted","message":"the initial names have been accepted"}],"acceptedNames":{"plural":"%[2]s","singular":"%[4]s","kind":"%[3]s","listKind":"%[3]sList"},"storedVersions":["v1"]}}` + "\n"

// k3sLeft counts the keys of k3sOwn that are no objects, by the reason in reports.
var k3sLeft = map[string]int64{
	"what k3s keeps for itself":      2,
	"marks of the old store":         2,
	"leases of the old API servers":  2,
	"ranges of service addresses":    2,
	"endpoints of the old":           2,
	"events (taken along with":       1,
	"keys of resources that are not": 1,
}

// k3sObjects is the number of keys that are objects of a cluster.
const k3sObjects = 6

// k3sOwn creates the additional content of the store of every k3s: its own data, the marks of kine, and its
// custom resources.
func k3sOwn(k *harness.Kine) {
	put := func(key, value string) int64 { return k.Put(key, []byte(value)) }
	// A salt, a colon, and a value that is encrypted with the token, in base64. While a server starts for the
	// first time there is an empty one, too.
	put("/bootstrap/e3b0c44298fc", "36bb7c1d6a2d8f0c:9XyO0fG8bDk2mD1sJ5w0nVb7QYtq3xXKc1o0rA==")
	put("/bootstrap/5feceb66ffc8", "")
	put("/registry/health", `{"health":"true"}`)
	put("/registry/masterleases/192.168.1.10", "k8s\x00\x0a\x0f\x0a\x02v1\x12\x09Endpoints")
	put("/registry/ranges/serviceips", "k8s\x00")
	put("/registry/ranges/servicenodeports", "k8s\x00")
	put("/registry/services/endpoints/default/kubernetes", "k8s\x00")
	put("/registry/endpointslices/default/kubernetes", "k8s\x00")
	put("/registry/leases/kube-system/apiserver-abc", `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"apiserver-abc","namespace":"kube-system","uid":"l1","labels":{"apiserver.kubernetes.io/identity":"kube-apiserver"}}}`)
	put("/registry/leases/kube-system/k3s", `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"k3s","namespace":"kube-system","uid":"l2"},"spec":{"holderIdentity":"old"}}`)
	put("/registry/events/kube-system/e.1", "k8s\x00")
	put("/registry/podsecuritypolicy/old", "k8s\x00")
	put("/registry/apiextensions.k8s.io/customresourcedefinitions/addons.k3s.cattle.io", fmt.Sprintf(k3sDefinition, "k3s.cattle.io", "addons", "Addon", "addon"))
	put("/registry/apiextensions.k8s.io/customresourcedefinitions/helmcharts.helm.cattle.io", fmt.Sprintf(k3sDefinition, "helm.cattle.io", "helmcharts", "HelmChart", "helmchart"))
	put("/registry/k3s.cattle.io/addons/kube-system/coredns", `{"apiVersion":"k3s.cattle.io/v1","kind":"Addon","metadata":{"name":"coredns","namespace":"kube-system","uid":"addon","generation":1},"spec":{"checksum":"c0ffee","source":"/var/lib/rancher/k3s/server/manifests/coredns.yaml"},"status":{}}`+"\n")
	put("/registry/helm.cattle.io/helmcharts/kube-system/traefik", `{"apiVersion":"helm.cattle.io/v1","kind":"HelmChart","metadata":{"name":"traefik","namespace":"kube-system","uid":"chart","generation":1,"finalizers":["wrangler.cattle.io/on-helm-chart-remove"]},"spec":{"chart":"https://%{KUBERNETES_API}%/static/charts/traefik.tgz","set":{"global.systemDefaultRegistry":""}},"status":{"jobName":"helm-install-traefik"}}`+"\n")
	put("/registry/configmaps/kube-system/extension-apiserver-authentication", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"extension-apiserver-authentication","namespace":"kube-system","uid":"eaa"},"data":{"requestheader-username-headers":"[\"X-Remote-User\"]"}}`)
	k.Delete("gap-20", 0) // by which kine fills a number without a row
}
