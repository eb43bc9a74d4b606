//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Namespaces of effects: quotas allow none of some Pods in the second, and only so much in the third.
const (
	defaulted = "/api/v1/namespaces/defaulted"
	scoped    = "/api/v1/namespaces/scoped"
	measured  = "/api/v1/namespaces/measured"

	defaultedSets    = "/apis/apps/v1/namespaces/defaulted/daemonsets"
	defaultedScalers = "/namespaces/defaulted/horizontalpodautoscalers"
	agingPath        = "/apis/aging.rowlock.dev/"
)

// effect is a request whose answer shows what a server adds to an object, merges into it, or counts. It is a dry run, or a read.
type effect struct {
	what, method, path, contentType, body string
	code                                  int      // with which it must be refused; 0: it must be done
	with, without                         []string // texts that the answer, or a warning in its header, must have, and must not
}

// dry is the effect of a create.
func dry(what, path, body string, with ...string) effect {
	return effect{what: what, method: http.MethodPost, path: path + "?dryRun=All", contentType: plainJSON, body: body, with: with}
}

// beyond is a create that a quota does not allow.
func beyond(what, path, body string) effect {
	e := dry(what, path, body)
	e.code = http.StatusForbidden
	return e
}

// mergedSet returns a DaemonSet, or a part of it, with containers of one owner.
func mergedSet(containers string) string {
	return `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"merged"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{` + containers + `}}}}`
}

func containersOf(containers string) string { return `"containers":[` + containers + `]` }

func changedSet(what, contentType, query, containers string, code int, with, without []string) effect {
	return effect{what, http.MethodPatch, defaultedSets + "/merged?dryRun=All" + query, contentType, mergedSet(containers), code, with, without}
}

// jsonPatched is a JSON patch of the DaemonSet.
func jsonPatched(what, operations string, with ...string) effect {
	return effect{what, http.MethodPatch, defaultedSets + "/merged?dryRun=All", jsonPatch, "[" + operations + "]", 0, with, nil}
}

// cpuPod returns a Pod with a container for each request of CPU.
func cpuPod(more string, cpus ...string) string {
	containers := ""
	for i, cpu := range cpus {
		containers += fmt.Sprintf(`,{"name":"c%d","image":"i","resources":{"requests":{"cpu":%q}}}`, i, cpu)
	}
	return fmt.Sprintf(`{"metadata":{"name":"cpus"},"spec":{%s"automountServiceAccountToken":false,"containers":[%s]}}`, more, containers[1:])
}

func sizedClaim(size string) string {
	return fmt.Sprintf(`{"metadata":{"name":"sized"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":%q}}}}`, size)
}

// absentHook is a webhook for PodTemplates of a namespace at an address where nothing answers.
func absentHook(policy, ns string) string {
	return fmt.Sprintf(`{"metadata":{"name":"absent-%s"},"webhooks":[{"name":"absent.rowlock.dev","sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":2,"failurePolicy":%q,
"clientConfig":{"url":"https://127.0.0.1:1/"},"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":%[1]q}},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["podtemplates"],"operations":["CREATE"]}]}]}`, ns, policy)
}

func restrictedTo(name, hard, more string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"hard":{%s}%s}}`, name, hard, more)
}

const (
	oneTemplate     = `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	oneTemplateBody = `{"metadata":{"name":"t"},` + oneTemplate + `}`
	oneSelector     = `"selector":{"matchLabels":{"a":"b"}}`
	jobTemplate     = `"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}`
	scaledOne       = `"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},"maxReplicas":3`
	highClass       = `"priorityClassName":"robust-high",`
	overhead        = `"runtimeClassName":"robust",`
	hasA, hasB      = `"name":"a","image":"i"`, `"name":"b","image":"i"`
)

// effectsSetup are the objects that effects need.
var effectsSetup = [][2]string{
	{"/api/v1/namespaces", `{"metadata":{"name":"defaulted","labels":{"pod-security.kubernetes.io/warn":"restricted"}}}`}, {"/api/v1/namespaces", `{"metadata":{"name":"scoped"}}`}, {"/api/v1/namespaces", `{"metadata":{"name":"measured"}}`},
	{"/apis/scheduling.k8s.io/v1/priorityclasses", `{"metadata":{"name":"robust-high"},"value":4711,"preemptionPolicy":"Never"}`},
	{"/apis/node.k8s.io/v1/runtimeclasses", `{"metadata":{"name":"robust"},"handler":"robust","overhead":{"podFixed":{"cpu":"120m"}},"scheduling":{"nodeSelector":{"robust":"yes"}}}`},
	{"/apis/autoscaling/v1" + defaultedScalers, `{"metadata":{"name":"twin"},"spec":{` + scaledOne + `,"targetCPUUtilizationPercentage":55}}`},
	{defaulted + "/secrets", `{"metadata":{"name":"first-type"},"type":"robust.rowlock.dev/first"}`}, {defaulted + "/secrets", `{"metadata":{"name":"second-type"},"type":"robust.rowlock.dev/second"}`},
	{scoped + "/resourcequotas", restrictedTo("best-effort", `"pods":"0"`, `,"scopes":["BestEffort"]`)},
	{scoped + "/resourcequotas", restrictedTo("terminating", `"pods":"0"`, `,"scopes":["Terminating"]`)},
	{scoped + "/resourcequotas", restrictedTo("class", `"pods":"0"`, `,"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["robust-high"]}]}`)},
	{definitions, `{"metadata":{"name":"antiques.aging.rowlock.dev"},"spec":{"group":"aging.rowlock.dev","scope":"Cluster","names":{"plural":"antiques","singular":"antique","kind":"Antique","listKind":"AntiqueList"},
"versions":[{"name":"v1","served":true,"storage":false,"deprecated":true,"schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`},
	{webhooks, absentHook("Fail", "scoped")}, {webhooks, absentHook("Ignore", "measured")},
	{measured + "/resourcequotas", restrictedTo("amounts", `"requests.cpu":"1","requests.storage":"5Gi","services.nodeports":"0"`, "")},
}

// effects are what each server must do to objects at all times.
var effects = []effect{
	dry("the priority of a Pod by its class", defaulted+"/pods", plainPod(highClass), `"priority":4711`, `"preemptionPolicy":"Never"`),
	dry("the default tolerations of a Pod", defaulted+"/pods", plainPod(""), `"key":"node.kubernetes.io/not-ready"`, `"key":"node.kubernetes.io/unreachable"`, `"tolerationSeconds":300`),
	dry("the token of a Pod", defaulted+"/pods", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, `"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"`, `"serviceAccountName":"default"`),
	dry("what a class adds to a Pod", defaulted+"/pods", plainPod(overhead), `"overhead":{"cpu":"120m"}`, `"nodeSelector":{"robust":"yes"}`),
	dry("the state of a new Pod", defaulted+"/pods", cpuPod("", "10m"), `"qosClass":"Burstable"`, `"phase":"Pending"`, `"restartPolicy":"Always"`),
	dry("the defaults of a claim", defaulted+"/persistentvolumeclaims", sizedClaim("1Gi"), `"kubernetes.io/pvc-protection"`, `"volumeMode":"Filesystem"`),
	dry("a claim of no class", defaulted+"/persistentvolumeclaims", `{"metadata":{"name":"none"},"spec":{"storageClassName":"","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`, `"storageClassName":""`),
	dry("the type of a Secret", defaulted+"/secrets", `{"metadata":{"name":"s"}}`, `"type":"Opaque"`),
	dry("the defaults of a Deployment", "/apis/apps/v1/namespaces/defaulted/deployments", `{"metadata":{"name":"d"},"spec":{`+oneSelector+`,`+oneTemplate+`}}`, `"replicas":1`, `"maxSurge":"25%"`, `"revisionHistoryLimit":10`, `"imagePullPolicy":"Always"`),
	dry("the defaults of a StatefulSet", "/apis/apps/v1/namespaces/defaulted/statefulsets", `{"metadata":{"name":"d"},"spec":{"serviceName":"s",`+oneSelector+`,`+oneTemplate+`}}`, `"podManagementPolicy":"OrderedReady"`),
	dry("the defaults of a Job", "/apis/batch/v1/namespaces/defaulted/jobs", `{"metadata":{"name":"j"},"spec":{`+jobTemplate+`}}`, `"backoffLimit":6`, `"completionMode":"NonIndexed"`, `"batch.kubernetes.io/controller-uid"`),
	dry("the defaults of a CronJob", "/apis/batch/v1/namespaces/defaulted/cronjobs", `{"metadata":{"name":"j"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{`+jobTemplate+`}}}}`, `"concurrencyPolicy":"Allow"`, `"successfulJobsHistoryLimit":3`),
	dry("the defaults of an autoscaler", "/apis/autoscaling/v2"+defaultedScalers, `{"metadata":{"name":"h"},"spec":{`+scaledOne+`}}`, `"averageUtilization":80`, `"minReplicas":1`),
	dry("the defaults of a Service", defaulted+"/services", `{"metadata":{"name":"s"},"spec":{"clusterIP":"None","selector":{"a":"b"},"ports":[{"port":80}]}}`, `"targetPort":80`, `"protocol":"TCP"`, `"sessionAffinity":"None"`),
	dry("the defaults of a NetworkPolicy", "/apis/networking.k8s.io/v1/namespaces/defaulted/networkpolicies", `{"metadata":{"name":"n"},"spec":{"podSelector":{},"egress":[{}]}}`, `"policyTypes":["Ingress","Egress"]`),
	dry("the defaults of a Namespace", "/api/v1/namespaces", `{"metadata":{"name":"nowhere-yet"}}`, `"kubernetes.io/metadata.name":"nowhere-yet"`, `"finalizers":["kubernetes"]`),
	dry("the taint of a new Node", "/api/v1/nodes", `{"metadata":{"name":"new"}}`, `"key":"node.kubernetes.io/not-ready"`),
	dry("the defaults of a StorageClass", "/apis/storage.k8s.io/v1/storageclasses", `{"metadata":{"name":"s"},"provisioner":"p"}`, `"reclaimPolicy":"Delete"`, `"volumeBindingMode":"Immediate"`),
	dry("the defaults of a LimitRange", defaulted+"/limitranges", `{"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","default":{"cpu":"2"}}]}}`, `"defaultRequest":{"cpu":"2"}`),
	dry("the warning of a Pod that a standard forbids", defaulted+"/pods", plainPod(""), "would violate PodSecurity"),
	dry("the warning of an unknown field", defaulted+"/configmaps", `{"metadata":{"name":"w"},"nothing":1}`, `unknown field \"nothing\"`),
	dry("the warning of a field that is there twice", defaulted+"/configmaps", `{"metadata":{"name":"w"},"data":{"a":"b"},"data":{"a":"c"}}`, `duplicate field \"data\"`),
	{"the warning of a deprecated version", http.MethodGet, agingPath + "v1/antiques", "", "", 0, []string{"aging.rowlock.dev/v1 Antique is deprecated; use aging.rowlock.dev/v2 Antique"}, nil},
	{"no warning of a version that is not deprecated", http.MethodGet, agingPath + "v2/antiques", "", "", 0, nil, []string{"is deprecated"}},
	{"the Secrets of a type", http.MethodGet, defaulted + "/secrets?fieldSelector=type%3Drobust.rowlock.dev%2Ffirst", "", "", 0, []string{`"name":"first-type"`}, []string{`"name":"second-type"`}},
	{"the Secrets of other types", http.MethodGet, defaulted + "/secrets?fieldSelector=type!%3Drobust.rowlock.dev%2Ffirst", "", "", 0, []string{`"name":"second-type"`}, []string{`"name":"first-type"`}},
	{"the fields of a custom resource", http.MethodPost, widgets.path(Namespaces[0], "") + "?dryRun=All", plainJSON, `{"apiVersion":"robust.rowlock.dev/v1","kind":"Widget","metadata":{"name":"pruned"},"spec":{"side":"none","unknown":"stranger"}}`, 0, []string{`"side":"none"`}, []string{"stranger"}},
	{"the metrics of an autoscaler in another version", http.MethodGet, "/apis/autoscaling/v2" + defaultedScalers + "/twin", "", "", 0, []string{`"name":"cpu"`, `"averageUtilization":55`, `"maxReplicas":3`}, nil},
	{"the target of an autoscaler", http.MethodGet, "/apis/autoscaling/v1" + defaultedScalers + "/twin", "", "", 0, []string{`"targetCPUUtilizationPercentage":55`}, nil},

	changedSet("an apply of a container of one's own", applyPatch, "&fieldManager=second", containersOf(`{"name":"b","image":"new"}`), 0, []string{hasA, `"image":"new"`}, []string{hasB}),
	changedSet("an apply of another owner's container", applyPatch, "&fieldManager=second", containersOf(`{"name":"b","image":"i"},{"name":"a","image":"other"}`), http.StatusConflict, nil, nil),
	changedSet("an apply without a container of one's own", applyPatch, "&fieldManager=first", `"restartPolicy":"Always"`, 0, []string{hasB}, []string{hasA}),
	changedSet("a strategic patch of a container", strategicPatch, "", containersOf(`{"name":"b","image":"new"}`), 0, []string{hasA, `"image":"new"`}, []string{hasB}),
	changedSet("a strategic patch that deletes a container", strategicPatch, "", containersOf(`{"name":"a","$patch":"delete"}`), 0, []string{hasB}, []string{hasA}),
	changedSet("a merge patch of the containers", mergePatch, "", containersOf(`{"name":"b","image":"i"}`), 0, []string{hasB}, []string{hasA}),

	jsonPatched("a JSON patch that moves a value", `{"op":"add","path":"/metadata/labels","value":{"a":"v"}},{"op":"move","from":"/metadata/labels/a","path":"/metadata/labels/b"}`, `"labels":{"b":"v"}`),
	jsonPatched("a JSON patch that copies a value", `{"op":"add","path":"/metadata/labels","value":{"a":"v"}},{"op":"copy","from":"/metadata/labels/a","path":"/metadata/labels/b"}`, `"labels":{"a":"v","b":"v"}`),
	jsonPatched("a JSON patch that removes a value", `{"op":"add","path":"/metadata/labels","value":{"a":"v","b":"v"}},{"op":"remove","path":"/metadata/labels/a"}`, `"labels":{"b":"v"}`),
	jsonPatched("a JSON patch that inserts a container", `{"op":"add","path":"/spec/template/spec/containers/0","value":{"name":"first","image":"i"}}`, `"containers":[{"name":"first","image":"i"`, hasA, hasB),

	{"a write that a webhook must see, which does not answer", http.MethodPost, scoped + "/podtemplates?dryRun=All", plainJSON, oneTemplateBody, http.StatusInternalServerError, nil, nil},
	dry("a write that a webhook need not see, which does not answer", measured+"/podtemplates", oneTemplateBody),

	beyond("a Pod of best effort beyond a quota", scoped+"/pods", plainPod("")),
	beyond("a Pod that ends beyond a quota", scoped+"/pods", cpuPod(`"activeDeadlineSeconds":60,`, "10m")),
	beyond("a Pod of a class beyond a quota", scoped+"/pods", cpuPod(highClass, "10m")),
	dry("a Pod in the scope of no quota", scoped+"/pods", cpuPod("", "10m")),
	beyond("a Pod beyond the CPU of a quota", measured+"/pods", cpuPod("", "2")),
	beyond("containers that are together beyond the CPU of a quota", measured+"/pods", cpuPod("", "600m", "600m")),
	beyond("a Pod that is with its overhead beyond the CPU of a quota", measured+"/pods", cpuPod(overhead, "950m")),
	beyond("a Pod without a request that a quota counts", measured+"/pods", plainPod("")),
	dry("a Pod within the CPU of a quota", measured+"/pods", cpuPod("", "950m")),
	beyond("a claim beyond the storage of a quota", measured+"/persistentvolumeclaims", sizedClaim("6Gi")),
	dry("a claim within the storage of a quota", measured+"/persistentvolumeclaims", sizedClaim("4Gi")),
	beyond("a port of nodes beyond a quota", measured+"/services", `{"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[{"port":80}]}}`),
}

// takesEffect tries all effects in turn, at all servers. That a server does what it must is recorded as a right, which the set-up grants: a
// server that begins needs some time until it has read the objects.
func (c *client) takesEffect(ctx context.Context) {
	if !c.made(ctx, c, append(effectsSetup[:len(effectsSetup):len(effectsSetup)], effectPolicies()...)...) || !c.age(ctx) || !c.mergeSet(ctx, "first", "a") || !c.mergeSet(ctx, "second", "b") || !c.counted(ctx) {
		return
	}
	now, effects := c.rec.Now(), slices.Concat(effects, policyEffects, agedEffects)
	subject := func(e *effect) string { return c.label() + ": " + e.what }
	for i := range effects {
		c.rec.Add(&history.Right{Subject: subject(&effects[i]), Granted: true, Call: now, Return: now, Outcome: history.OK})
	}
	for n := c.rand.IntN(len(effects)); ctx.Err() == nil && !c.rec.Lost(); n++ {
		e := &effects[n%len(effects)]
		a := &history.Access{Subject: subject(e), Server: c.next(), What: "read", Call: c.rec.Now()}
		code, header, answer, err := c.exchange(ctx, a.Server, e.method, e.path, e.contentType, e.body)
		if a.Return = c.rec.Now(); err == nil {
			a.Code = e.took(code, append(answer, strings.Join(header.Values("Warning"), "\n")...))
			c.rec.Add(a)
		}
		c.rest(ctx)
	}
}

// took returns the code of an answer: 200 if the server did what it must, 403 if it did not, another one if it was not able to.
func (e *effect) took(code int, answer []byte) int {
	switch {
	case e.code != 0 && code == e.code:
		return http.StatusOK
	case code >= 500 || code == http.StatusTooManyRequests:
		return code
	case e.code != 0 || code >= 300:
		return http.StatusForbidden
	}
	for _, text := range e.with {
		if !contains(answer, text) {
			return http.StatusForbidden
		}
	}
	for _, text := range e.without {
		if contains(answer, text) {
			return http.StatusForbidden
		}
	}
	return http.StatusOK
}

// mergeSet applies a container of the DaemonSet for an owner.
func (c *client) mergeSet(ctx context.Context, owner, container string) bool {
	_, _, ok := c.mustAs(ctx, c, applyPatch, http.MethodPatch, defaultedSets+"/merged?fieldManager="+owner, mergedSet(containersOf(fmt.Sprintf(`{"name":%q,"image":"i"}`, container))), http.StatusOK, http.StatusCreated)
	return ok
}

// counted waits until controllers have made the accounts of the Pods, and counted what the quotas are about, without which they are not
// enforced.
func (c *client) counted(ctx context.Context) bool {
	const account = "/serviceaccounts/default"
	for _, path := range []string{
		defaulted + account, scoped + account, measured + account,
		scoped + "/resourcequotas/best-effort", scoped + "/resourcequotas/terminating", scoped + "/resourcequotas/class", measured + "/resourcequotas/amounts",
		agingPath + "v2/antiques",
	} {
		if !c.persist(ctx, "GET "+path+" until it is there, and counts", func(ctx context.Context, server int) (int, bool) {
			var q struct {
				Kind   string
				Status json.RawMessage
			}
			code, answer, err := c.send(ctx, server, http.MethodGet, path, "", "")
			if err != nil {
				return 0, false
			}
			return code, code == http.StatusOK && json.Unmarshal(answer, &q) == nil && (q.Kind != "ResourceQuota" || contains(q.Status, `"used":`))
		}) {
			return false
		}
	}
	return true
}
