//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	ruledNamespace   = "ruled"
	ruled            = "/api/v1/namespaces/" + ruledNamespace
	guardedNamespace = "guarded" // whose Pods must be of the restricted standard
	agent            = "system:node:fixed"
	climber          = "system:serviceaccount:" + ruledNamespace + ":climber"
	ruledRoles       = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + ruledNamespace
	ruledApps        = "/apis/apps/v1/namespaces/" + ruledNamespace
	ruledSets        = ruledApps + "/daemonsets"
	ruledJobs        = "/apis/batch/v1/namespaces/" + ruledNamespace + "/jobs"
	ingressClasses   = "/apis/networking.k8s.io/v1/ingressclasses"
	csiDrivers       = "/apis/storage.k8s.io/v1/csidrivers"
	nodeLeases       = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	ruledGauges      = "/apis/" + changingGroup + "/v1/namespaces/" + ruledNamespace + "/gauges"
	gauges           = "gauges." + changingGroup
)

// rule is a request that no server may do, and how it is answered.
type rule struct {
	what, as                  string
	groups                    []string
	method, path, contentType string
	body                      string
	code                      int
}

func plainPod(more string) string {
	return fmt.Sprintf(`{"metadata":{"name":"fixed"},"spec":{%s"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`, more)
}

// agents is the group of nodes.
var agents = []string{"system:nodes"}

// rulesSetup are the objects that the rules are about.
var rulesSetup = [][2]string{
	{"/api/v1/namespaces", `{"metadata":{"name":"` + ruledNamespace + `"}}`},
	{"/api/v1/namespaces", `{"metadata":{"name":"` + guardedNamespace + `","labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`},
	{"/api/v1/nodes", `{"metadata":{"name":"fixed"}}`},
	{"/api/v1/nodes", `{"metadata":{"name":"other"}}`},
	{ruled + "/serviceaccounts", `{"metadata":{"name":"climber"}}`},
	{ruled + "/configmaps", `{"metadata":{"name":"fixed"},"immutable":true,"data":{"v":"first"}}`},
	{ruled + "/secrets", `{"metadata":{"name":"fixed"},"immutable":true,"data":{"v":"YQ=="}}`},
	{ruled + "/pods", plainPod("")},
	{ruled + "/services", `{"metadata":{"name":"fixed"},"spec":{"ports":[{"port":80}]}}`},
	{ruledSets, `{"metadata":{"name":"fixed"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`},
	{ruledApps + "/replicasets", `{"metadata":{"name":"fixed"},"spec":{` + oneSelector + `,` + oneTemplate + `}}`},
	{ruledApps + "/statefulsets", `{"metadata":{"name":"fixed"},"spec":{"serviceName":"s",` + oneSelector + `,` + oneTemplate + `}}`},
	{ruledApps + "/controllerrevisions", `{"metadata":{"name":"fixed"},"revision":1,"data":{"a":"b"}}`},
	{ruledJobs, `{"metadata":{"name":"fixed"},"spec":{"suspend":true,` + jobTemplate + `}}`},
	{ruled + "/persistentvolumeclaims", `{"metadata":{"name":"fixed"},"spec":{"storageClassName":"","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`},
	{"/api/v1/persistentvolumes", `{"metadata":{"name":"fixed"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/fixed"}}}`},
	{priorityClasses, `{"metadata":{"name":"fixed"},"value":10}`},
	{runtimeClasses, `{"metadata":{"name":"fixed"},"handler":"fixed"}`},
	{storageClasses, `{"metadata":{"name":"fixed"},"provisioner":"fixed","parameters":{"a":"b"}}`},
	{ingressClasses, `{"metadata":{"name":"fixed"},"spec":{"controller":"robust.rowlock.dev/fixed"}}`},
	{csiDrivers, `{"metadata":{"name":"fixed.robust.rowlock.dev"},"spec":{"attachRequired":true}}`},
	{definitions, `{"metadata":{"name":"` + gauges + `"},"spec":{"group":"` + changingGroup + `","scope":"Namespaced","names":{"plural":"gauges","singular":"gauge","kind":"Gauge","listKind":"GaugeList"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"number":{"type":"integer"},"fixed":{"type":"string","x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}}}}}}]}}`},
	{ruledGauges, `{"apiVersion":"` + changingGroup + `/v1","kind":"Gauge","metadata":{"name":"fixed"},"spec":{"fixed":"first"}}`},
	{ruledRoles + "/roles", `{"metadata":{"name":"climber"},"rules":[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["get","create","update","patch"]}]}`},
	{ruledRoles + "/rolebindings", `{"metadata":{"name":"climber"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"climber"},"subjects":[{"kind":"ServiceAccount","name":"climber","namespace":"` + ruledNamespace + `"}]}`},
}

// rules are what no request may do.
var rules = []rule{
	{what: "a change of an immutable ConfigMap", method: http.MethodPatch, path: ruled + "/configmaps/fixed", contentType: mergePatch, body: `{"data":{"v":"second"}}`, code: 422},
	{what: "an immutable ConfigMap that is so no more", method: http.MethodPut, path: ruled + "/configmaps/fixed", contentType: plainJSON, body: `{"metadata":{"name":"fixed"},"data":{"v":"first"}}`, code: 422},
	{what: "a change of an immutable Secret", method: http.MethodPatch, path: ruled + "/secrets/fixed", contentType: mergePatch, body: `{"data":{"v":"Yg=="}}`, code: 422},
	{what: "another type of a Secret", method: http.MethodPatch, path: ruled + "/secrets/fixed", contentType: mergePatch, body: `{"type":"other"}`, code: 422},
	{what: "another account of a Pod", method: http.MethodPatch, path: ruled + "/pods/fixed", contentType: strategicPatch, body: `{"spec":{"serviceAccountName":"climber","serviceAccount":"climber"}}`, code: 422},
	{what: "another address of a Service", method: http.MethodPatch, path: ruled + "/services/fixed", contentType: mergePatch, body: `{"spec":{"clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"]}}`, code: 422},
	{what: "another selector of a DaemonSet", method: http.MethodPatch, path: ruledSets + "/fixed", contentType: mergePatch, body: `{"spec":{"selector":{"matchLabels":{"a":"c"}},"template":{"metadata":{"labels":{"a":"c"}}}}}`, code: 422},
	{what: "another selector of a ReplicaSet", method: http.MethodPatch, path: ruledApps + "/replicasets/fixed", contentType: mergePatch, body: `{"spec":{"selector":{"matchLabels":{"a":"c"}},"template":{"metadata":{"labels":{"a":"c"}}}}}`, code: 422},
	{what: "another Service of a StatefulSet", method: http.MethodPatch, path: ruledApps + "/statefulsets/fixed", contentType: mergePatch, body: `{"spec":{"serviceName":"other"}}`, code: 422},
	{what: "other data of a ControllerRevision", method: http.MethodPatch, path: ruledApps + "/controllerrevisions/fixed", contentType: mergePatch, body: `{"data":{"a":"c"}}`, code: 422},
	{what: "another template of a Job", method: http.MethodPatch, path: ruledJobs + "/fixed", contentType: strategicPatch, body: `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"other"}]}}}}`, code: 422},
	{what: "other access modes of a claim", method: http.MethodPatch, path: ruled + "/persistentvolumeclaims/fixed", contentType: mergePatch, body: `{"spec":{"accessModes":["ReadWriteMany"]}}`, code: 422},
	{what: "a larger claim that cannot grow", method: http.MethodPatch, path: ruled + "/persistentvolumeclaims/fixed?dryRun=All", contentType: mergePatch, body: `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`, code: 422},
	{what: "another source of a volume", method: http.MethodPatch, path: "/api/v1/persistentvolumes/fixed", contentType: mergePatch, body: `{"spec":{"hostPath":{"path":"/other"}}}`, code: 422},
	{what: "another value of a PriorityClass", method: http.MethodPatch, path: priorityClasses + "/fixed", contentType: mergePatch, body: `{"value":11}`, code: 422},
	{what: "another handler of a RuntimeClass", method: http.MethodPatch, path: runtimeClasses + "/fixed", contentType: mergePatch, body: `{"handler":"other"}`, code: 422},
	{what: "another provisioner of a StorageClass", method: http.MethodPatch, path: storageClasses + "/fixed", contentType: mergePatch, body: `{"provisioner":"other"}`, code: 422},
	{what: "other parameters of a StorageClass", method: http.MethodPatch, path: storageClasses + "/fixed", contentType: mergePatch, body: `{"parameters":{"a":"c"}}`, code: 422},
	{what: "another controller of an IngressClass", method: http.MethodPatch, path: ingressClasses + "/fixed", contentType: mergePatch, body: `{"spec":{"controller":"robust.rowlock.dev/other"}}`, code: 422},
	{what: "other attachments of a CSIDriver", method: http.MethodPatch, path: csiDrivers + "/fixed.robust.rowlock.dev", contentType: mergePatch, body: `{"spec":{"attachRequired":false}}`, code: 422},
	{what: "another role of a binding", method: http.MethodPatch, path: ruledRoles + "/rolebindings/climber", contentType: mergePatch, body: `{"roleRef":{"kind":"ClusterRole","name":"view"}}`, code: 422},
	{what: "a node of a Pod without a binding", method: http.MethodPatch, path: ruled + "/pods/fixed?dryRun=All", contentType: strategicPatch, body: `{"spec":{"nodeName":"other"}}`, code: 422},
	{what: "two controllers of an object", method: http.MethodPost, path: ruled + "/configmaps?dryRun=All", contentType: plainJSON, body: `{"metadata":{"generateName":"wrong-","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"a","uid":"u","controller":true},{"apiVersion":"v1","kind":"Node","name":"b","uid":"v","controller":true}]}}`, code: 422},
	{what: "a Lease of no time", method: http.MethodPost, path: "/apis/coordination.k8s.io/v1/namespaces/" + ruledNamespace + "/leases?dryRun=All", contentType: plainJSON, body: `{"metadata":{"generateName":"wrong-"},"spec":{"leaseDurationSeconds":0}}`, code: 422},
	{what: "a disruption budget with two bounds", method: http.MethodPost, path: "/apis/policy/v1/namespaces/" + ruledNamespace + "/poddisruptionbudgets?dryRun=All", contentType: plainJSON, body: `{"metadata":{"generateName":"wrong-"},"spec":{"minAvailable":1,"maxUnavailable":1}}`, code: 422},
	{what: "an exact list of any version", method: http.MethodGet, path: ruled + "/configmaps?resourceVersion=0&resourceVersionMatch=Exact", code: 422},
	{what: "a list that matches no version", method: http.MethodGet, path: ruled + "/configmaps?resourceVersionMatch=NotOlderThan", code: 422},
	{what: "a list of a version that is none", method: http.MethodGet, path: ruled + "/configmaps?resourceVersion=first", code: 400},
	{what: "a list by a field that selects nothing", method: http.MethodGet, path: ruled + "/configmaps?fieldSelector=data.v%3Dfirst", code: 400},
	{what: "a list by a selector that is none", method: http.MethodGet, path: ruled + "/configmaps?labelSelector=a+in+(", code: 400},
	{what: "a list that continues with no token", method: http.MethodGet, path: ruled + "/configmaps?limit=1&continue=here", code: 400},
	{what: "a change that a schema forbids", method: http.MethodPatch, path: ruledGauges + "/fixed", contentType: mergePatch, body: `{"spec":{"fixed":"second"}}`, code: 422},
	{what: "a value of another type than its schema has", method: http.MethodPost, path: ruledGauges, contentType: plainJSON, body: `{"apiVersion":"` + changingGroup + `/v1","kind":"Gauge","metadata":{"generateName":"wrong-"},"spec":{"number":"one"}}`, code: 422},
	{what: "another scope of a definition", method: http.MethodPatch, path: definitions + "/" + gauges + "?dryRun=All", contentType: mergePatch, body: `{"spec":{"scope":"Cluster"}}`, code: 422},
	{what: "a Pod of an account that is not there", method: http.MethodPost, path: ruled + "/pods?dryRun=All", contentType: plainJSON, body: plainPod(`"serviceAccountName":"nobody",`), code: 403},
	{what: "a privileged Pod where only restricted ones may be", method: http.MethodPost, path: "/api/v1/namespaces/" + guardedNamespace + "/pods?dryRun=All", contentType: plainJSON, body: plainPod(`"hostNetwork":true,`), code: 403},
	{what: "an unknown field", method: http.MethodPost, path: ruled + "/configmaps?dryRun=All&fieldValidation=Strict", contentType: plainJSON, body: `{"metadata":{"generateName":"wrong-"},"nothing":1}`, code: 400},
	{what: "a name that is none", method: http.MethodPost, path: ruled + "/configmaps?dryRun=All", contentType: plainJSON, body: `{"metadata":{"name":"Wrong_"}}`, code: 422},
	{what: "a label that is none", method: http.MethodPatch, path: ruled + "/configmaps/fixed", contentType: mergePatch, body: `{"metadata":{"labels":{"on":"y e s"}}}`, code: 422},
	{what: "another name than that of the path", method: http.MethodPut, path: ruled + "/configmaps/fixed", contentType: plainJSON, body: `{"metadata":{"name":"other"},"immutable":true,"data":{"v":"first"}}`, code: 400},
	{what: "an object of a namespace that is not there", method: http.MethodPost, path: "/api/v1/namespaces/nowhere/configmaps", contentType: plainJSON, body: `{"metadata":{"generateName":"lost-"}}`, code: 404},
	{what: "a delete of the namespace default", method: http.MethodDelete, path: "/api/v1/namespaces/default?dryRun=All", code: 403},
	{what: "an apply that says who owns what", method: http.MethodPatch, path: ruled + "/configmaps/fixed?fieldManager=rules", contentType: applyPatch, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"fixed","managedFields":[{"manager":"other","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]}}`, code: 400},
	{what: "a role with rights that its author lacks", as: climber, method: http.MethodPost, path: ruledRoles + "/roles?dryRun=All", contentType: plainJSON, body: `{"metadata":{"generateName":"more-"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`, code: 403},
	{what: "more rights in a role of one's own", as: climber, method: http.MethodPatch, path: ruledRoles + "/roles/climber", contentType: jsonPatch, body: `[{"op":"add","path":"/rules/-","value":{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}}]`, code: 403},
	{what: "a binding of a role with rights that its author lacks", as: climber, method: http.MethodPost, path: ruledRoles + "/rolebindings?dryRun=All", contentType: plainJSON, body: `{"metadata":{"generateName":"more-"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"ServiceAccount","name":"climber","namespace":"` + ruledNamespace + `"}]}`, code: 403},
	{what: "a token of an account by one who may not", as: climber, method: http.MethodPost, path: ruled + "/serviceaccounts/climber/token", contentType: plainJSON, body: `{"spec":{"expirationSeconds":600}}`, code: 403},
	{what: "a delete of a Pod by another node than its own", as: agent, groups: agents, method: http.MethodDelete, path: ruled + "/pods/fixed?dryRun=All&gracePeriodSeconds=0", code: 403},
	{what: "a status of a Pod by another node than its own", as: agent, groups: agents, method: http.MethodPatch, path: ruled + "/pods/fixed/status?dryRun=All", contentType: strategicPatch, body: `{"status":{"phase":"Failed"}}`, code: 403},
	{what: "a change of a node by another one", as: agent, groups: agents, method: http.MethodPatch, path: "/api/v1/nodes/other?dryRun=All", contentType: mergePatch, body: `{"metadata":{"annotations":{"a":"b"}}}`, code: 403},
	{what: "a reserved label of a node by itself", as: agent, groups: agents, method: http.MethodPatch, path: "/api/v1/nodes/fixed?dryRun=All", contentType: mergePatch, body: `{"metadata":{"labels":{"node-restriction.kubernetes.io/a":"b"}}}`, code: 403},
	{what: "a token by a node without a Pod of the account", as: agent, groups: agents, method: http.MethodPost, path: ruled + "/serviceaccounts/climber/token", contentType: plainJSON, body: `{"spec":{"expirationSeconds":600}}`, code: 403},
	{what: "a Lease of another node", as: agent, groups: agents, method: http.MethodPost, path: nodeLeases + "?dryRun=All", contentType: plainJSON, body: `{"metadata":{"name":"other"}}`, code: 403},
	{what: "a Lease of a node in another namespace", as: agent, groups: agents, method: http.MethodPost, path: strings.Replace(nodeLeases, "kube-node-lease", ruledNamespace, 1) + "?dryRun=All", contentType: plainJSON, body: `{"metadata":{"name":"fixed"}}`, code: 403},
	{what: "a CSINode of another node", as: agent, groups: agents, method: http.MethodPost, path: csiNodes.path("", "") + "?dryRun=All", contentType: plainJSON, body: `{"metadata":{"name":"other"},"spec":{"drivers":[]}}`, code: 403},
	{what: "a Pod by a node", as: agent, groups: agents, method: http.MethodPost, path: ruled + "/pods?dryRun=All", contentType: plainJSON, body: plainPod(`"nodeName":"fixed",`), code: 403},
	{what: "an eviction from another node", as: agent, groups: agents, method: http.MethodPost, path: ruled + "/pods/fixed/eviction?dryRun=All", contentType: plainJSON, body: `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"fixed"}}`, code: 403},
	{what: "a taint of a node by itself", as: agent, groups: agents, method: http.MethodPatch, path: "/api/v1/nodes/fixed?dryRun=All", contentType: mergePatch, body: `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`, code: 403},
	{what: "a role in another namespace than one's own", as: climber, method: http.MethodPost, path: "/apis/rbac.authorization.k8s.io/v1/namespaces/blue/roles?dryRun=All", contentType: plainJSON, body: `{"metadata":{"generateName":"more-"}}`, code: 403},
}

// breaks tries to break each rule in turn at every server.
func (c *client) breaks(ctx context.Context) {
	for _, made := range rulesSetup {
		if _, _, ok := c.must(ctx, c, http.MethodPost, made[0], made[1], http.StatusCreated, http.StatusConflict); !ok {
			return
		}
	}
	for n := c.rand.IntN(len(rules)); ctx.Err() == nil; n++ {
		c.rule(ctx, &rules[n%len(rules)])
		c.rest(ctx)
	}
}

// rule tries to break a rule.
func (c *client) rule(ctx context.Context, r *rule) {
	a := &history.Access{Subject: r.what, Server: c.next(), What: history.Rule, Want: r.code, Call: c.rec.Now()}
	as := *c
	as.as, as.groups = r.as, r.groups
	code, _, err := as.send(ctx, a.Server, r.method, r.path, r.contentType, r.body)
	if a.Return, a.Code = c.rec.Now(), code; err == nil {
		c.rec.Add(a)
	}
}
