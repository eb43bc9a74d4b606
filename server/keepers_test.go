package server_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestKeepers changes each object that the server keeps, as an administrator, and compares the result of the
// next pass of its keeper, which every start makes, with a stock 1.32.
func TestKeepers(t *testing.T) {
	const (
		merge  = "application/merge-patch+json"
		rbac   = "/apis/rbac.authorization.k8s.io/v1/"
		flow   = "/apis/flowcontrol.apiserver.k8s.io/v1/"
		system = "/api/v1/namespaces/kube-system/configmaps/"
		public = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
		local  = "/apis/apiregistration.k8s.io/v1/apiservices/"
		auto   = `{"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}},"rules":[]}`
		space  = "/api/v1/namespaces/default/"
		slice  = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
	)
	authority := httptest.NewTLSServer(nil)
	defer authority.Close()
	trusted := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate().Raw}))
	memory := storetest.NewShared()
	start := func(t *testing.T) *servertest.Server {
		return servertest.Start(t, servertest.Complete(t, "--feature-gates=MultiCIDRServiceAllocator=true", "--runtime-config=networking.k8s.io/v1beta1=true"),
			servertest.On(memory.Open(), sqlstore.Config{}), func(c *server.Config) {
				c.Controllers.Named = func(name string) bool { return name == "root-ca-cert-publisher" } // which does not wait then
				c.Controllers.Host = "one"
				c.Controllers.JoinAt = "https://join.example.org:6443"
				c.Controllers.Authority = func() ([]byte, error) { return []byte(trusted), nil }
				c.Controllers.Authentication = func() (map[string]string, error) {
					return map[string]string{"client-ca-file": trusted, "requestheader-allowed-names": `["front"]`}, nil
				}
			})
	}
	lease := ""
	for _, phase := range []string{"change", "look"} {
		if !t.Run(phase, func(t *testing.T) {
			s := start(t)
			servertest.Eventually(t, func() bool {
				for _, path := range []string{system + "extension-apiserver-authentication", system + "kube-apiserver-legacy-service-account-token-tracking", public, space + "configmaps/kube-root-ca.crt", space + "serviceaccounts/default"} {
					if s.Do("GET", path, "").Code != 200 {
						return false
					}
				}
				var leases struct {
					Items []struct{ Metadata struct{ Name string } }
				}
				if err := json.Unmarshal(s.Must("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?labelSelector=apiserver.kubernetes.io/identity=kube-apiserver", ""), &leases); err != nil {
					t.Fatal(err)
				}
				if len(leases.Items) == 1 {
					lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/" + leases.Items[0].Metadata.Name
				}
				return lease != ""
			})
			for _, c := range []struct {
				path   string
				change string // a merge patch; "": the administrator deletes the object
				at     string // a path within the object
				want   string // the final state; "" means nothing
			}{
				// The authority that pods trust, and what extension servers trust.
				{space + "configmaps/kube-root-ca.crt", `{"data":{"ca.crt":"mine"}}`, "data.ca~crt", trusted},
				{"/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt", `{"data":{"other":"mine"},"metadata":{"annotations":{"kubernetes.io/description":null}}}`, "data.other", ""},
				{"/api/v1/namespaces/kube-node-lease/configmaps/kube-root-ca.crt", "", "data.ca~crt", trusted},
				{"/api/v1/namespaces/kube-public/configmaps/kube-root-ca.crt", `{"metadata":{"labels":{"mine":"x"},"annotations":{"kubernetes.io/description":"mine"}}}`, "metadata.annotations.kubernetes~io/description", "mine"},
				{system + "extension-apiserver-authentication", `{"data":{"client-ca-file":"","requestheader-allowed-names":"[\"mine\"]","mine":"x"}}`, "data.client-ca-file", trusted},
				{system + "extension-apiserver-authentication", `{}`, "data.requestheader-allowed-names", `["mine","front"]`},
				{system + "extension-apiserver-authentication", `{}`, "data.mine", "x"},
				{system + "kube-apiserver-legacy-service-account-token-tracking", `{"data":{"since":"2020-02-03","mine":"x"}}`, "data.since", "2020-02-03"},
				{public, `{"data":{"kubeconfig":"mine"}}`, "data.kubeconfig", "mine"},

				// Priority and fairness: the first and the last of each kind tell that the pass is over.
				{flow + "prioritylevelconfigurations/exempt", `{"spec":{"exempt":{"nominalConcurrencyShares":3}}}`, "spec.exempt.nominalConcurrencyShares", "3"},
				{flow + "prioritylevelconfigurations/system", `{"spec":{"limited":{"nominalConcurrencyShares":3}}}`, "spec.limited.nominalConcurrencyShares", "30"},
				{flow + "prioritylevelconfigurations/workload-low", `{"spec":{"limited":{"nominalConcurrencyShares":3}},"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}}}`, "spec.limited.nominalConcurrencyShares", "3"},
				{flow + "prioritylevelconfigurations/global-default", "", "spec.limited.nominalConcurrencyShares", "20"},
				{flow + "flowschemas/catch-all", `{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}}}`, "metadata.annotations.apf~kubernetes~io/autoupdate-spec", "true"},
				{flow + "flowschemas/service-accounts", `{"spec":{"matchingPrecedence":8001},"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}}}`, "spec.matchingPrecedence", "8001"},
				{flow + "flowschemas/kube-scheduler", `{"spec":{"matchingPrecedence":801},"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":null}}}`, "metadata.annotations.apf~kubernetes~io/autoupdate-spec", "false"},
				{flow + "flowschemas/probes", `{"spec":{"matchingPrecedence":7}}`, "spec.matchingPrecedence", "2"},
				{flow + "flowschemas/global-default", "", "spec.matchingPrecedence", "9900"},

				// Roles: missing parts come back, additions stay, and so does a role with autoupdate "false".
				{rbac + "clusterroles/system:discovery", `{"rules":[]}`, "rules.0.verbs.0", "get"},
				{rbac + "clusterroles/system:public-info-viewer", `{"rules":[{"verbs":["get"],"nonResourceURLs":["/mine"]}],"metadata":{"labels":{"kubernetes.io/bootstrapping":null}}}`, "rules.0.nonResourceURLs.0", "/mine"},
				{rbac + "clusterroles/system:public-info-viewer", `{}`, "rules.1.nonResourceURLs.0", "/healthz"},
				{rbac + "clusterroles/system:public-info-viewer", `{}`, "metadata.labels.kubernetes~io/bootstrapping", "rbac-defaults"},
				{rbac + "clusterroles/system:basic-user", auto, "rules.0.verbs.0", ""},
				{rbac + "clusterroles/system:node", "", "metadata.name", "system:node"},
				{rbac + "clusterrolebindings/system:discovery", `{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"mine"}]}`, "subjects.0.name", "mine"},
				{rbac + "clusterrolebindings/system:discovery", `{}`, "subjects.1.name", "system:authenticated"},
				{rbac + "clusterrolebindings/system:basic-user", `{"subjects":[],"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}}}`, "subjects.0.name", ""},
				{rbac + "namespaces/kube-system/roles/extension-apiserver-authentication-reader", "", "rules.0.verbs.0", "get"},

				// The kubernetes Service, its endpoints and its network.
				{space + "services/kubernetes", `{"metadata":{"labels":{"provider":"mine"}},"spec":{"sessionAffinity":"ClientIP"}}`, "spec.sessionAffinity", "ClientIP"},
				{space + "services/kubernetes", `{}`, "metadata.labels.provider", "mine"},
				{space + "endpoints/kubernetes", `{"subsets":[],"metadata":{"labels":{"mine":"x"}}}`, "subsets.0.addresses.0.ip", "192.0.2.1"},
				{slice, "", "endpoints.0.addresses.0", "192.0.2.1"},
				{"/apis/networking.k8s.io/v1beta1/servicecidrs/kubernetes", `{"metadata":{"labels":{"mine":"x"}}}`, "metadata.labels.mine", "x"},

				// The APIServices, the identity of the server, and the rest.
				{local + "v1.apps", `{"spec":{"versionPriority":7},"metadata":{"labels":{"mine":"x"}}}`, "spec.versionPriority", "15"},
				{local + "v1.apps", `{}`, "metadata.labels.mine", "x"},
				{local + "v1.batch", `{"spec":{"versionPriority":7},"metadata":{"labels":{"kube-aggregator.kubernetes.io/automanaged":null}}}`, "spec.versionPriority", "7"},
				{local + "v1.autoscaling", "", "spec.group", "autoscaling"},
				{"/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical", `{"description":"mine"}`, "description", "mine"},
				{space + "serviceaccounts/default", "", "metadata.name", "default"},
				{lease, "", "metadata.labels.apiserver~kubernetes~io/identity", "kube-apiserver"},
			} {
				if phase == "change" {
					if c.change == "" {
						s.Must("DELETE", c.path, "")
					} else {
						s.Must("PATCH", c.path, c.change, "Content-Type", merge)
					}
					continue
				}
				t.Run(c.path+" "+c.at, func(t *testing.T) {
					servertest.Eventually(t, func() bool {
						w := s.Do("GET", c.path, "")
						return w.Code == 200 && at(w.Body.Bytes(), c.at) == c.want
					})
				})
			}
		}) {
			return
		}
	}
}

// at returns the value at a dotted path of a JSON text, where ~ stands for a dot in a name.
func at(text []byte, path string) string {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return ""
	}
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[strings.ReplaceAll(name, "~", ".")]
		case []any:
			i := int(name[0] - '0')
			if i >= len(in) {
				return ""
			}
			v = in[i]
		default:
			return ""
		}
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
