package server_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/verbs/podverbs"
	"github.com/rowlock/rowlock/server/verbs/reviews"
	"github.com/rowlock/rowlock/server/verbs/tokenverbs"
	"github.com/rowlock/rowlock/sqlstore"
)

// right is one rule of a role.
type right struct {
	verb, group, resource string // resource may be "pods/status"
	names                 []string
	namespace             string // the only one; "": all, and cluster scope
}

// allows is implemented again here, so that the server does not check itself.
func (r right) allows(verb, group, resource, name string) bool {
	return r.verb == verb && r.group == group && r.resource == resource && (len(r.names) == 0 || slices.Contains(r.names, name))
}

// rights holds the rights of the one user of a test. Masters may everything.
type rights struct{ has atomic.Pointer[[]right] }

func (z *rights) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	if slices.Contains(a.User.Groups, authx.GroupMasters) {
		return authx.Allow, "", nil
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	for _, r := range *z.has.Load() {
		if a.ResourceRequest && (r.namespace == "" || r.namespace == a.Namespace) && r.allows(a.Verb, a.APIGroup, resource, a.Name) {
			return authx.Allow, "", nil
		}
	}
	return authx.NoOpinion, "", nil
}

// masterOrOne authenticates requests with a header as a master, and all others as one user.
type masterOrOne struct{}

func (masterOrOne) Authenticate(r *http.Request) (*authx.Authenticated, bool, error) {
	if r.Header.Get("Master") != "" {
		return servertest.Everybody{User: servertest.Admin}.Authenticate(r)
	}
	return &authx.Authenticated{Identity: &authx.Identity{Name: "one", Groups: []string{authx.GroupAuthenticated}}}, true, nil
}

// cluster is a whole server on a store in memory, in which nothing happens by itself,
// and with objects of every kind.
type cluster struct {
	t     testing.TB
	s     *server.Server
	store *sqlstore.Store
	z     *rights
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{t: t, z: &rights{}}
	c.may()
	s := servertest.Start(t, servertest.Idle, c.configure)
	c.s, c.store = s.Server, s.Store
	c.seed()
	return c
}

// configure is the option of a server that asks the rights of the one user.
func (c *cluster) configure(cfg *server.Config) {
	cfg.Authenticator, cfg.Authorizer = masterOrOne{}, c.z
	cfg.Special = podverbs.Handlers(podverbs.Kubelet{Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("nobody is there")
	}})
	maps.Copy(cfg.Special, tokenverbs.Handlers(tokenverbs.Config{Issue: func(context.Context, *authx.Grant) (string, string, error) { return "token", "id", nil }}))
	maps.Copy(cfg.Special, reviews.Handlers(reviews.Config{Authorizer: c.z, Rules: authx.AlwaysDeny{}}))
}

// may replaces the rights of the user.
func (c *cluster) may(list ...right) { c.z.has.Store(&list) }

// begun is a client that goes once it has seen how an endless answer begins: with its
// header, then with what there is.
type begun struct {
	*httptest.ResponseRecorder
	flushes int
	leave   func()
}

func (b *begun) Flush() {
	b.ResponseRecorder.Flush()
	if b.flushes++; b.flushes == 2 {
		b.leave()
	}
}

// do makes a request as the user, or as a master.
func (c *cluster) do(ctx context.Context, method, path, contentType, body string, header ...string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := &begun{ResponseRecorder: httptest.NewRecorder(), leave: cancel}
	c.s.Handler().ServeHTTP(w, r)
	return w.ResponseRecorder
}

func (c *cluster) must(method, path, body string) []byte {
	c.t.Helper()
	w := c.do(context.Background(), method, path, "application/json", body, "Master", "yes")
	if w.Code >= 300 {
		c.t.Fatalf("%s %s: %d %s\n%s", method, path, w.Code, w.Body, body)
	}
	return w.Body.Bytes()
}

// A template of pods, in JSON.
const template = `{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"c","image":"i"}],"automountServiceAccountToken":false}}`

const once = `{"metadata":{"labels":{"app":"x"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}`

// samples are the fields of a small valid object of each resource in addition to its metadata.
var samples = map[string]string{
	"configmaps": `"data":{"a":"b"}`, "endpoints": ``, "limitranges": `"spec":{"limits":[]}`, "namespaces": ``, "nodes": ``,
	"events":                 `"involvedObject":{"namespace":"NS","kind":"Pod","name":"p"},"reason":"r"`,
	"persistentvolumeclaims": `"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`,
	"persistentvolumes":      `"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"}}`,
	"pods":                   `"spec":{"containers":[{"name":"c","image":"i"}],"automountServiceAccountToken":false}`,
	"podtemplates":           `"template":` + template,
	"replicationcontrollers": `"spec":{"replicas":1,"selector":{"app":"x"},"template":` + template + `}`,
	"resourcequotas":         `"spec":{}`, "secrets": `"data":{"k":"c2VjcmV0"}`, "serviceaccounts": ``,
	"services": `"spec":{"ports":[{"port":80}]}`,

	"controllerrevisions.apps": `"revision":1,"data":{}`,
	"daemonsets.apps":          `"spec":{"selector":{"matchLabels":{"app":"x"}},"template":` + template + `}`,
	"deployments.apps":         `"spec":{"selector":{"matchLabels":{"app":"x"}},"template":` + template + `}`,
	"replicasets.apps":         `"spec":{"selector":{"matchLabels":{"app":"x"}},"template":` + template + `}`,
	"statefulsets.apps":        `"spec":{"serviceName":"s","selector":{"matchLabels":{"app":"x"}},"template":` + template + `}`,
	"cronjobs.batch":           `"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":` + once + `}}}`,
	"jobs.batch":               `"spec":{"template":` + once + `}`,

	"horizontalpodautoscalers.autoscaling": `"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"},"maxReplicas":3}`,
	"events.events.k8s.io": `"eventTime":"2024-01-01T00:00:00.000000Z","reportingController":"x.example/c","reportingInstance":"i","action":"a","reason":"r","type":"Normal",` +
		`"regarding":{"namespace":"NS","kind":"Pod","name":"p"}`,
	"ingressclasses.networking.k8s.io":                         `"spec":{"controller":"x.example/c"}`,
	"ingresses.networking.k8s.io":                              `"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}`,
	"networkpolicies.networking.k8s.io":                        `"spec":{"podSelector":{}}`,
	"poddisruptionbudgets.policy":                              `"spec":{"minAvailable":1,"selector":{"matchLabels":{"none":"x"}}}`,
	"clusterrolebindings.rbac.authorization.k8s.io":            `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"x"}`,
	"rolebindings.rbac.authorization.k8s.io":                   `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"x"}`,
	"clusterroles.rbac.authorization.k8s.io":                   `"rules":[]`,
	"roles.rbac.authorization.k8s.io":                          `"rules":[]`,
	"csidrivers.storage.k8s.io":                                `"spec":{}`,
	"csinodes.storage.k8s.io":                                  `"spec":{"drivers":[]}`,
	"csistoragecapacities.storage.k8s.io":                      `"storageClassName":"s"`,
	"storageclasses.storage.k8s.io":                            `"provisioner":"x.example/p"`,
	"volumeattachments.storage.k8s.io":                         `"spec":{"attacher":"x.example","nodeName":"n","source":{"persistentVolumeName":"p"}}`,
	"priorityclasses.scheduling.k8s.io":                        `"value":5`,
	"leases.coordination.k8s.io":                               `"spec":{}`,
	"runtimeclasses.node.k8s.io":                               `"handler":"h"`,
	"endpointslices.discovery.k8s.io":                          `"addressType":"IPv4","endpoints":[]`,
	"flowschemas.flowcontrol.apiserver.k8s.io":                 `"spec":{"matchingPrecedence":300,"priorityLevelConfiguration":{"name":"exempt"}}`,
	"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": `"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":5,"limitResponse":{"type":"Reject"}}}`,

	"mutatingwebhookconfigurations.admissionregistration.k8s.io":   `"webhooks":[]`,
	"validatingwebhookconfigurations.admissionregistration.k8s.io": `"webhooks":[]`,
	"validatingadmissionpolicies.admissionregistration.k8s.io": `"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["none.example"],"apiVersions":["v1"],` +
		`"operations":["CREATE"],"resources":["nothings"]}]},"validations":[{"expression":"true"}]}`,
	"validatingadmissionpolicybindings.admissionregistration.k8s.io": `"spec":{"policyName":"none","validationActions":["Deny"]}`,
	"apiservices.apiregistration.k8s.io":                             `"spec":{"group":"PREFIX.example","version":"v1","groupPriorityMinimum":100,"versionPriority":10,"service":{"name":"s","namespace":"a"}}`,
	"customresourcedefinitions.apiextensions.k8s.io": `"spec":{"group":"others.example","scope":"Namespaced","names":{"plural":"PREFIX","singular":"PREFIX","kind":"PREFIX","listKind":"PREFIXList"},` +
		`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}`,
	"certificatesigningrequests.certificates.k8s.io": `"spec":{"signerName":"x.example/y","usages":["client auth"],"request":"` + csr() + `"}`,
	"widgets.rights.example":                         `"spec":{"replicas":1}`,
}

func csr() string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}}, key)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// named returns the name that an object of a resource has for a short one: some names must match
// the content.
func named(r *kinds.Resource, short string) string {
	switch r.Plural {
	case "apiservices":
		return "v1." + short + ".example"
	case "customresourcedefinitions":
		return short + ".others.example"
	}
	return short
}

// sample returns a whole object, with more in its metadata.
func sample(r *kinds.Resource, namespace, short, more string) string {
	rest, ok := samples[r.GroupResource().String()]
	if !ok {
		panic("no sample of " + r.GroupResource().String())
	}
	rest = strings.ReplaceAll(strings.ReplaceAll(rest, `"NS"`, `"`+namespace+`"`), "PREFIX", short) // requests for certificates are random
	if r.Plural == "pods" {
		rest = strings.ReplaceAll(rest, `"i"`, `"i:`+short+`"`)
	}
	if rest != "" {
		rest = "," + rest
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q%s}%s}`, r.GVK().GroupVersion(), r.Kind, named(r, short), more, rest)
}

// marker returns the annotation of each object: an answer that contains it shows the object.
func marker(r *kinds.Resource, namespace, name string) string {
	if !r.Namespaced {
		namespace = ""
	}
	return fmt.Sprintf("marker{%s/%s/%s}", r.Storage.Key, namespace, name)
}

var markers = regexp.MustCompile(`marker{([^}]*)}`)

func annotated(r *kinds.Resource, namespace, short string) string {
	return fmt.Sprintf(`,"annotations":{"mark":%q}`, marker(r, namespace, named(r, short)))
}

// collection returns the path of a collection.
func collection(r *kinds.Resource, namespace string) string {
	path := "/api/" + r.Version
	if r.Group != "" {
		path = "/apis/" + r.Group + "/" + r.Version
	}
	if r.Namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.Plural
}

// stored returns the resources that objects are stored of.
func (c *cluster) stored() (list []*kinds.Resource) {
	for _, r := range c.s.Config().Catalogue.All() {
		if r.Storage != nil {
			list = append(list, r)
		}
	}
	return list
}

// seed makes the objects x and y of each kind in the namespace a, and x in b.
func (c *cluster) seed() {
	c.t.Helper()
	for _, ns := range []string{"a", "b"} {
		c.must("POST", "/api/v1/namespaces", `{"metadata":{"name":"`+ns+`"}}`)
		c.must("POST", "/api/v1/namespaces/"+ns+"/serviceaccounts", `{"metadata":{"name":"default"}}`)
	}
	const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	c.must("POST", crds, `{"metadata":{"name":"widgets.rights.example"},"spec":{"group":"rights.example","scope":"Namespaced",
"names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"replicas":{"type":"integer"}}},"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}},
"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}}}]}}`)
	var crd map[string]any
	if err := json.Unmarshal(c.must("GET", crds+"/widgets.rights.example", ""), &crd); err != nil {
		c.t.Fatal(err)
	}
	now := time.Now().UTC().Format(time.RFC3339)
	crd["status"] = map[string]any{
		"acceptedNames": crd["spec"].(map[string]any)["names"], "storedVersions": []string{"v1"},
		"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True", "lastTransitionTime": now, "reason": "r", "message": "m"},
			map[string]any{"type": "Established", "status": "True", "lastTransitionTime": now, "reason": "r", "message": "m"},
		},
	}
	body, err := json.Marshal(crd)
	if err != nil {
		c.t.Fatal(err)
	}
	c.must("PUT", crds+"/widgets.rights.example/status", string(body))
	servertest.Eventually(c.t, func() bool {
		return c.do(context.Background(), "GET", "/apis/rights.example/v1/widgets", "", "", "Master", "yes").Code == 200
	})
	made := map[string]bool{}
	for _, r := range c.stored() {
		if made[r.Storage.Key] {
			continue
		}
		made[r.Storage.Key] = true
		c.must("POST", collection(r, "a"), sample(r, "a", "x", annotated(r, "a", "x")))
		c.must("POST", collection(r, "a"), sample(r, "a", "y", annotated(r, "a", "y")))
		if r.Namespaced {
			c.must("POST", collection(r, "b"), sample(r, "b", "x", annotated(r, "b", "x")))
		}
	}
}

// changes returns the changes of the store since a revision, oldest first.
func (c *cluster) changes(since int64) []sqlstore.Change {
	c.t.Helper()
	if c.s.Cache.Revision() == since {
		return nil
	}
	list, err := c.store.Changes(context.Background(), since, 1000, true)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range list {
		list[i].PrevValue, list[i].Value = bytes.Clone(list[i].PrevValue), bytes.Clone(list[i].Value)
	}
	return list
}

// undo brings the store to where it was before some changes.
func (c *cluster) undo(list []sqlstore.Change) {
	c.t.Helper()
	for _, ch := range slices.Backward(list) {
		op := sqlstore.Op{Key: ch.Key, Value: ch.PrevValue}
		switch {
		case ch.Deleted:
			op.Verb = sqlstore.Create
		case ch.PrevRevision == 0:
			op.Verb, op.Value = sqlstore.Delete, ch.Value
		default:
			op.Verb = sqlstore.Update
		}
		if op.Verb != sqlstore.Create {
			op.Expect = c.s.Cache.Get(ch.Key.Resource, ch.Key.Namespace, ch.Key.Name).Revision
		}
		if _, err := c.store.Write(context.Background(), op); err != nil {
			c.t.Fatalf("undoing %v: %v", ch.Key, err)
		}
	}
}
