package podsecurity_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/podsecurity"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

// cluster is one namespace, "n", and its pods.
type cluster struct {
	labels map[string]string
	pods   []*corev1.Pod
}

func (c cluster) Get(_ context.Context, _, _, name string) (kinds.Object, error) {
	if name == "missing" {
		return nil, nil
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.labels}}, nil
}

func (c cluster) List(context.Context, string, string, func([]byte) bool) ([]kinds.Object, error) {
	var out []kinds.Object
	for _, p := range c.pods {
		out = append(out, p)
	}
	return out, nil
}

// call holds the outcome of one write.
type call struct {
	warnings []string
	notes    map[string]string
}

func (c *call) of(op admission.Operation, plural, sub string, obj, old runtime.Object) *admission.Attributes {
	c.notes = map[string]string{}
	group := ""
	if plural == "deployments" {
		group = "apps"
	}
	return &admission.Attributes{
		Operation: op, Resource: &kinds.Resource{Group: group, Plural: plural, Namespaced: plural != "namespaces"}, Subresource: sub,
		Namespace: "n", Name: "x", Object: obj, Old: old, User: &authx.Identity{Name: "eve"},
		Warn:     func(text string) { c.warnings = append(c.warnings, text) },
		Annotate: func(key, value string) { c.notes[key] = value },
	}
}

func labels(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m["pod-security.kubernetes.io/"+pairs[i]] = pairs[i+1]
	}
	return m
}

func plugin(t *testing.T, c cluster, config podsecurity.Config) *podsecurity.Plugin {
	t.Helper()
	p, err := podsecurity.New(c, config, release.Default, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func privileged(name string) *corev1.Pod {
	yes := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i", SecurityContext: &corev1.SecurityContext{Privileged: &yes}}},
	}}
}

func plain(name string) *corev1.Pod {
	p := privileged(name)
	p.Spec.Containers[0].SecurityContext = nil
	return p
}

const breaks = `privileged (container "c" must not set securityContext.privileged=true)`

// TestNotesAreBounded: a pod of many containers makes no annotation that is as long as all of their names, once for each check.
func TestNotesAreBounded(t *testing.T) {
	pod := plain("x")
	for i := range 20_000 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("a-container-%d", i)})
	}
	var c call
	a := c.of(admission.Create, "pods", "", pod, nil)
	if err := plugin(t, cluster{labels: labels("audit", "restricted")}, podsecurity.Config{}).Validate(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	note := c.notes["pod-security.kubernetes.io/audit-violations"]
	if !strings.HasPrefix(note, `would violate PodSecurity "restricted:latest"`) || len(note) > 256<<10+len("...") {
		t.Errorf("%d bytes: %.80s", len(note), note)
	}
}

func TestPods(t *testing.T) {
	class := "kata"
	fast := privileged("x")
	fast.Spec.RuntimeClassName = &class
	image := privileged("x")
	image.Spec.Containers[0].Image = "j"
	debugged := privileged("x")
	debugged.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e", Image: "i"}}}
	refused := `pods "x" is forbidden: violates PodSecurity "baseline:latest": ` + breaks
	baseline := labels("enforce", "baseline")
	for name, c := range map[string]struct {
		labels   map[string]string
		op       admission.Operation
		sub      string
		pod, old *corev1.Pod
		config   podsecurity.Config
		err      string
		warnings []string
		notes    map[string]string
	}{
		"no labels":   {pod: privileged("x"), notes: labels("enforce-policy", "privileged:latest")},
		"enforced":    {labels: baseline, pod: privileged("x"), err: refused, notes: labels("enforce-policy", "baseline:latest", "audit-violations", "")},
		"kept":        {labels: baseline, pod: plain("x"), notes: labels("enforce-policy", "baseline:latest")},
		"warned":      {labels: labels("warn", "baseline", "warn-version", "v1.30"), pod: privileged("x"), warnings: []string{`would violate PodSecurity "baseline:v1.30": ` + breaks}, notes: labels("enforce-policy", "privileged:latest")},
		"audited":     {labels: labels("audit", "baseline"), pod: privileged("x"), notes: labels("enforce-policy", "privileged:latest", "audit-violations", `would violate PodSecurity "baseline:latest": `+breaks)},
		"bad label":   {labels: labels("enforce", "none"), pod: privileged("x"), err: `violates PodSecurity "restricted:latest": privileged`, notes: labels("error", `Failed to parse policy: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "none": must be one of privileged, baseline, restricted`)},
		"by default":  {config: podsecurity.Config{Defaults: podsecurity.Defaults{Enforce: "baseline"}}, pod: privileged("x"), err: refused},
		"user":        {labels: baseline, config: podsecurity.Config{Exemptions: podsecurity.Exemptions{Usernames: []string{"eve"}}}, pod: privileged("x"), notes: labels("exempt", "user")},
		"namespace":   {labels: baseline, config: podsecurity.Config{Exemptions: podsecurity.Exemptions{Namespaces: []string{"n"}}}, pod: privileged("x"), notes: labels("exempt", "namespace")},
		"runtime":     {labels: baseline, config: podsecurity.Config{Exemptions: podsecurity.Exemptions{RuntimeClasses: []string{"kata"}}}, pod: fast, notes: labels("exempt", "runtimeClass")},
		"update":      {labels: baseline, op: admission.Update, pod: privileged("x"), old: privileged("x")},
		"other image": {labels: baseline, op: admission.Update, pod: image, old: privileged("x"), err: refused},
		"debugged":    {labels: baseline, op: admission.Update, sub: "ephemeralcontainers", pod: debugged, old: privileged("x"), err: refused},
		"status":      {labels: baseline, op: admission.Update, sub: "status", pod: image, old: privileged("x")},
	} {
		t.Run(name, func(t *testing.T) {
			var got call
			if c.op == "" {
				c.op = admission.Create
			}
			var old runtime.Object
			if c.old != nil {
				old = c.old
			}
			err := plugin(t, cluster{labels: c.labels}, c.config).Validate(t.Context(), got.of(c.op, "pods", c.sub, c.pod, old))
			if c.err == "" && err != nil || !strings.Contains(fmt.Sprint(err), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if !slices.Equal(got.warnings, c.warnings) {
				t.Errorf("warnings %q, want %q", got.warnings, c.warnings)
			}
			for key, want := range c.notes {
				if have, ok := got.notes[key]; want != "" && have != want || want == "" && ok {
					t.Errorf("%s: %q, want %q", key, have, want)
				}
			}
			if len(c.notes) == 0 && c.err == "" && len(got.notes) > 0 {
				t.Errorf("notes %q", got.notes)
			}
		})
	}
}

func TestTemplatesAreWarnedOf(t *testing.T) {
	spec := corev1.PodTemplateSpec{Spec: privileged("").Spec}
	p := plugin(t, cluster{labels: labels("enforce", "baseline")}, podsecurity.Config{})
	want := []string{`would violate PodSecurity "baseline:latest": ` + breaks}
	for plural, obj := range map[string]runtime.Object{
		"deployments":            &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: spec}},
		"statefulsets":           &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: spec}},
		"daemonsets":             &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: spec}},
		"replicasets":            &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: spec}},
		"jobs":                   &batchv1.Job{Spec: batchv1.JobSpec{Template: spec}},
		"cronjobs":               &batchv1.CronJob{Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: spec}}}},
		"podtemplates":           &corev1.PodTemplate{Template: spec},
		"replicationcontrollers": &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Template: &spec}},
	} {
		var got call
		if err := p.Validate(t.Context(), got.of(admission.Create, plural, "", obj, nil)); err != nil || !slices.Equal(got.warnings, want) {
			t.Errorf("%s: %v, warnings %q", plural, err, got.warnings)
		}
		if _, ok := got.notes["pod-security.kubernetes.io/enforce-policy"]; ok {
			t.Errorf("%s: what is not enforced is noted as enforced", plural)
		}
		if err := p.Validate(t.Context(), got.of(admission.Update, plural, "status", obj, obj)); err != nil || len(got.warnings) > 1 {
			t.Errorf("%s/status: %v, warnings %q", plural, err, got.warnings)
		}
	}
	var got call
	if err := p.Validate(t.Context(), got.of(admission.Create, "replicationcontrollers", "", &corev1.ReplicationController{}, nil)); err != nil || got.warnings != nil {
		t.Errorf("without a template: %v, %q", err, got.warnings)
	}
}

func TestNamespaces(t *testing.T) {
	owned := func(name, uid string) *corev1.Pod {
		p, yes := privileged(name), true
		p.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(uid), Controller: &yes}}
		return p
	}
	pods := []*corev1.Pod{plain("plain"), owned("z", "1"), owned("b", "1"), owned("a", "2")}
	ns := func(l map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: l}}
	}
	exempt := podsecurity.Config{Exemptions: podsecurity.Exemptions{Namespaces: []string{"n"}}}
	violated := func(standard string, lines ...string) []string {
		return append([]string{fmt.Sprintf("existing pods in namespace \"n\" violate the new PodSecurity enforce level %q", standard)}, lines...)
	}
	bad := `Namespace "x" is invalid: metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "1": must be "latest" or "v1.x"`
	for name, c := range map[string]struct {
		now, before map[string]string
		create      bool
		config      podsecurity.Config
		err         string
		warnings    []string
	}{
		"stricter":           {now: labels("enforce", "baseline"), warnings: violated("baseline:latest", "a (and 2 other pods): privileged")},
		"version":            {now: labels("enforce", "baseline", "enforce-version", "v1.20"), before: labels("enforce", "baseline"), warnings: violated("baseline:v1.20", "a (and 2 other pods): privileged")},
		"the same":           {now: labels("enforce", "baseline"), before: labels("enforce", "baseline")},
		"relaxed":            {now: labels("enforce", "baseline"), before: labels("enforce", "restricted")},
		"only warned":        {now: labels("warn", "baseline")},
		"bad":                {now: labels("warn-version", "1"), err: bad},
		"bad at the start":   {now: labels("warn-version", "1"), create: true, err: bad},
		"bad before":         {now: labels("warn-version", "1"), before: labels("warn-version", "1")},
		"bad in another way": {now: labels("warn-version", "1"), before: labels("warn-version", "2"), err: bad},
		"exempt": {now: labels("enforce", "baseline", "audit", "restricted"), config: exempt,
			warnings: []string{`namespace "n" is exempt from Pod Security, and the policy (enforce=baseline:latest, audit=restricted:latest) will be ignored`}},
		"exempt at the start": {now: labels("warn", "baseline", "warn-version", "v1.1"), create: true, config: exempt,
			warnings: []string{`namespace "n" is exempt from Pod Security, and the policy (warn=baseline:v1.1) will be ignored`}},
		"exempt, nothing asked": {create: true, config: exempt},
	} {
		t.Run(name, func(t *testing.T) {
			var got call
			a := got.of(admission.Update, "namespaces", "", ns(c.now), ns(c.before))
			if c.create {
				a = got.of(admission.Create, "namespaces", "", ns(c.now), nil)
			}
			err := plugin(t, cluster{pods: pods}, c.config).Validate(t.Context(), a)
			if c.err == "" && err != nil || c.err != "" && fmt.Sprint(err) != c.err {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if !slices.Equal(got.warnings, c.warnings) {
				t.Errorf("warnings %q, want %q", got.warnings, c.warnings)
			}
		})
	}
}

func TestManyPodsAreNotAllTried(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 3001 {
		pods = append(pods, plain(fmt.Sprint(i)))
	}
	var got call
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels("enforce", "baseline")}}
	if err := plugin(t, cluster{pods: pods}, podsecurity.Config{}).Validate(t.Context(), got.of(admission.Update, "namespaces", "", ns, &corev1.Namespace{})); err != nil {
		t.Fatal(err)
	}
	if len(got.warnings) != 1 || !strings.HasPrefix(got.warnings[0], "new PodSecurity enforce level only checked against the first ") {
		t.Errorf("warnings %q", got.warnings)
	}
}

func TestMissingNamespace(t *testing.T) {
	var got call
	a := got.of(admission.Create, "pods", "", plain("x"), nil)
	a.Namespace = "missing"
	if err := plugin(t, cluster{}, podsecurity.Config{}).Validate(t.Context(), a); fmt.Sprint(err) != `Internal error occurred: failed to lookup namespace "missing"` {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	good := "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n"
	c, err := podsecurity.ParseConfig([]byte(good + "defaults: {enforce: baseline, enforce-version: v1.30, audit: restricted}\nexemptions: {usernames: [a], namespaces: [b], runtimeClasses: [c]}\n"))
	if err != nil || c.Defaults.EnforceVersion != "v1.30" || !slices.Equal(c.Exemptions.Namespaces, []string{"b"}) {
		t.Errorf("%+v, %v", c, err)
	}
	for text, want := range map[string]string{
		"kind: X":                                  "is not PodSecurityConfiguration",
		good + "defaults: {enforce: high}":         `defaults.enforce: Invalid value: "high": must be one of privileged, baseline, restricted`,
		good + "defaults: {warn-version: '1.30'}":  `must be "latest" or "v1.x"`,
		good + "exemptions: {namespaces: [a, a]}":  `exemptions.namespaces[1]: Duplicate value: "a"`,
		good + "exemptions: {usernames: ['']}":     "username must not be empty",
		good + "exemptions: {runtimeClasses: [_]}": "exemptions.runtimeClasses[0]: Invalid value",
		good + "exemption: {}":                     "unknown field",
	} {
		if _, err := podsecurity.ParseConfig([]byte(text)); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestUserNamespaces: where the gate is on, pods in a user namespace may be root in it, and see
// all of its /proc; nothing else is relaxed, and no other pods and servers.
func TestUserNamespaces(t *testing.T) {
	root, unmasked, yes, no := int64(0), corev1.UnmaskedProcMount, true, false
	isolated := func(change func(*corev1.Pod)) *corev1.Pod {
		p := plain("x")
		p.Spec.HostUsers = &no
		p.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
		change(p)
		return p
	}
	for name, c := range map[string]struct {
		level   string
		change  func(*corev1.Pod)
		off, on string // part of the refusal
	}{
		"no user is named":  {"restricted", func(*corev1.Pod) {}, "runAsNonRoot != true", ""},
		"root":              {"restricted", func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsUser = &root }, "runAsUser=0", ""},
		"all of proc":       {"baseline", func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext.ProcMount = &unmasked }, "procMount", ""},
		"privileged":        {"baseline", func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext.Privileged = &yes }, "privileged", "privileged"},
		"the node's users":  {"restricted", func(p *corev1.Pod) { p.Spec.HostUsers = &yes }, "runAsNonRoot != true", "runAsNonRoot != true"},
		"users are unknown": {"restricted", func(p *corev1.Pod) { p.Spec.HostUsers = nil }, "runAsNonRoot != true", "runAsNonRoot != true"},
	} {
		for gate, want := range map[bool]string{false: c.off, true: c.on} {
			p, err := podsecurity.New(cluster{labels: labels("enforce", c.level)}, podsecurity.Config{}, release.Default, gate, nil)
			if err != nil {
				t.Fatal(err)
			}
			var one call
			got := ""
			if err := p.Validate(t.Context(), one.of(admission.Create, "pods", "", isolated(c.change), nil)); err != nil {
				got = err.Error()
			}
			if (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%s, gate %t: %q, want %q", name, gate, got, want)
			}
		}
	}
}
