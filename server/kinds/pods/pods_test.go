package pods_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/pods"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
)

func decode(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// stored returns a pod as it is after its creation.
func stored(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	s := pods.Resource(gates.New(release.Default).Enabled).Storage.Strategy
	pod := decode(t, text)
	s.Default(pod)
	s.PrepareForCreate(context.Background(), pod)
	if errs := s.Validate(context.Background(), pod); len(errs) > 0 {
		t.Fatal(errs)
	}
	pod.Namespace = "default"
	return pod
}

const small = `{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}`

func TestDefaults(t *testing.T) {
	pod := stored(t, `{"metadata": {"name": "p", "annotations": {"pod.beta.kubernetes.io/init-containers": "[]", "a": "b"}},
		"spec": {"hostNetwork": true, "serviceAccount": "sa", "terminationGracePeriodSeconds": -3, "hostUsers": false,
		"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1", "memory": "1500u"}, "requests": {"cpu": "500m"}}, "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}]},
		"status": {"phase": "Running"}}`)
	c := pod.Spec.Containers[0]
	for name, ok := range map[string]bool{
		"legacy annotation":   len(pod.Annotations) == 1,
		"service account":     pod.Spec.ServiceAccountName == "sa" && pod.Spec.DeprecatedServiceAccount == "sa",
		"grace":               *pod.Spec.TerminationGracePeriodSeconds == 1,
		"host users":          pod.Spec.HostUsers == nil,
		"host port":           c.Ports[0].HostPort == 80 && c.Ports[0].Protocol == corev1.ProtocolTCP,
		"request from limit":  c.Resources.Requests.Memory().String() == "2m" && c.Resources.Requests.Cpu().String() == "500m",
		"resize policy":       c.ResizePolicy == nil,
		"pull policy":         c.ImagePullPolicy == corev1.PullAlways,
		"service links":       *pod.Spec.EnableServiceLinks,
		"status":              pod.Status.Phase == corev1.PodPending && pod.Status.QOSClass == corev1.PodQOSBurstable,
		"scheduler":           pod.Spec.SchedulerName == "default-scheduler",
		"empty context":       pod.Spec.SecurityContext != nil,
		"termination message": c.TerminationMessagePath == "/dev/termination-log",
	} {
		if !ok {
			t.Errorf("%s: %+v", name, pod)
		}
	}
	again := pod.DeepCopy()
	pods.Resource(gates.New(release.Default).Enabled).Storage.Default(again)
	if diff := cmp.Diff(pod, again); diff != "" {
		t.Errorf("defaulting a second time changes: %s", diff)
	}
}

func TestQualityOfService(t *testing.T) {
	for _, tt := range []struct {
		resources []string
		want      corev1.PodQOSClass
	}{
		{[]string{`{}`}, corev1.PodQOSBestEffort},
		{[]string{`{"limits": {"cpu": "1", "memory": "1"}}`}, corev1.PodQOSGuaranteed},
		{[]string{`{"limits": {"cpu": "1", "memory": "1"}}`, `{}`}, corev1.PodQOSBurstable},
		{[]string{`{"limits": {"cpu": "1", "memory": "1"}, "requests": {"cpu": "1m"}}`}, corev1.PodQOSBurstable},
		{[]string{`{"requests": {"cpu": "0"}}`}, corev1.PodQOSBestEffort},
		{[]string{`{"limits": {"example.com/x": "1"}, "requests": {"example.com/x": "1"}}`}, corev1.PodQOSBestEffort},
	} {
		var list []string
		for i, r := range tt.resources {
			list = append(list, `{"name": "c`+string(rune('a'+i))+`", "image": "i", "resources": `+r+`}`)
		}
		pod := stored(t, `{"metadata": {"name": "p"}, "spec": {"containers": [`+strings.Join(list, ",")+`]}}`)
		if pod.Status.QOSClass != tt.want {
			t.Errorf("%v: got %s, want %s", tt.resources, pod.Status.QOSClass, tt.want)
		}
	}
}

func TestCreate(t *testing.T) {
	gated := stored(t, `{"metadata": {"name": "p", "labels": {"rev": "7"}}, "spec": {"schedulingGates": [{"name": "g"}], "containers": [{"name": "c", "image": "i:1"}],
		"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "k", "labelSelector": {}, "matchLabelKeys": ["rev", "other"], "mismatchLabelKeys": ["x"]}]}}}}`)
	if c := gated.Status.Conditions; len(c) != 1 || c[0].Reason != "SchedulingGated" || c[0].Status != corev1.ConditionFalse {
		t.Errorf("conditions of a gated pod: %+v", c)
	}
	got := gated.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchExpressions
	want := []metav1.LabelSelectorRequirement{{Key: "rev", Operator: metav1.LabelSelectorOpIn, Values: []string{"7"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("selector: %s", diff)
	}

	s := pods.Resource(gates.New(release.Default).Enabled).Storage.Strategy
	bad := decode(t, `{"metadata": {"name": "p"}, "spec": {"nodeName": "n", "schedulingGates": [{"name": "g"}], "containers": [{"name": "c", "image": "i"}], "ephemeralContainers": [{"name": "e", "image": "i"}]}}`)
	s.Default(bad)
	if got := texts(s.Validate(context.Background(), bad)); len(got) != 2 ||
		got[0] != "spec.ephemeralContainers: Forbidden: cannot be set on create" ||
		got[1] != "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared" {
		t.Errorf("got %q", got)
	}
	dotted := decode(t, strings.Replace(small, `"p"`, `"a.b"`, 1))
	s.Default(dotted)
	if w := s.Warnings(context.Background(), dotted, nil); len(w) != 1 || !strings.HasSuffix(w[0], "a DNS label is recommended: [must not contain dots]") {
		t.Errorf("warnings: %q", w)
	}
	if w := s.Warnings(context.Background(), dotted, dotted); w != nil {
		t.Errorf("warnings of an update: %q", w)
	}
}

func TestAppArmor(t *testing.T) {
	const key = "container.apparmor.security.beta.kubernetes.io/c"
	for _, tt := range []struct {
		name, annotation, pod, container string
		wantAnnotation, wantProfile      string
		warned                           bool
	}{
		{"field to annotation", "", `{"type": "RuntimeDefault"}`, "", "runtime/default", "", false},
		{"container before pod", "", `{"type": "RuntimeDefault"}`, `{"type": "Localhost", "localhostProfile": "x"}`, "localhost/x", "Localhost", false},
		{"annotation to field", "unconfined", "", "", "unconfined", "Unconfined", true},
		{"annotation like the pod's", "runtime/default", `{"type": "RuntimeDefault"}`, "", "runtime/default", "", false},
		{"no profile", "", "", "", "", "", false},
	} {
		pod := decode(t, small)
		if tt.annotation != "" {
			pod.Annotations = map[string]string{key: tt.annotation}
		}
		if tt.pod != "" {
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{AppArmorProfile: &corev1.AppArmorProfile{}}
			if err := json.Unmarshal([]byte(tt.pod), pod.Spec.SecurityContext.AppArmorProfile); err != nil {
				t.Fatal(err)
			}
		}
		if tt.container != "" {
			pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{}}
			if err := json.Unmarshal([]byte(tt.container), pod.Spec.Containers[0].SecurityContext.AppArmorProfile); err != nil {
				t.Fatal(err)
			}
		}
		s := pods.Resource(gates.New(release.Default).Enabled).Storage.Strategy
		header := make(map[string][]string)
		ctx := request.With(context.Background(), request.NewScope(header, time.Time{}))
		s.Default(pod)
		s.PrepareForCreate(ctx, pod)
		profile := ""
		if sc := pod.Spec.Containers[0].SecurityContext; sc != nil && sc.AppArmorProfile != nil {
			profile = string(sc.AppArmorProfile.Type)
		}
		if pod.Annotations[key] != tt.wantAnnotation || profile != tt.wantProfile || (len(header) > 0) != tt.warned {
			t.Errorf("%s: annotation %q, profile %q, warnings %v", tt.name, pod.Annotations[key], profile, header)
		}
	}
}

func texts[E error](errs []E) []string {
	var out []string
	for _, e := range errs {
		if f, ok := any(e).(*field.Error); ok {
			out = append(out, status.Text(release.Default, f))
			continue
		}
		out = append(out, e.Error())
	}
	return out
}

// changed runs an update through a strategy and returns its errors.
func changed(t *testing.T, s *kinds.Strategy, old *corev1.Pod, change func(*corev1.Pod)) ([]string, *corev1.Pod) {
	t.Helper()
	pod := old.DeepCopy()
	change(pod)
	pods.Resource(gates.New(release.Default).Enabled).Storage.Default(pod)
	s.PrepareForUpdate(context.Background(), pod, old)
	return texts(s.ValidateUpdate(context.Background(), pod, old)), pod
}

func TestUpdate(t *testing.T) {
	s := pods.Resource(gates.New(release.Default).Enabled).Storage.Strategy
	deadline := int64(100)
	old := stored(t, `{"metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}, "spec": {"nodeName": "n", "activeDeadlineSeconds": 100,
		"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}], "containers": [{"name": "c", "image": "i:1"}]}}`)
	for _, tt := range []struct {
		name   string
		change func(*corev1.Pod)
		want   []string // beginnings of errors
	}{
		{"nothing", func(*corev1.Pod) {}, nil},
		{"image", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "i:2" }, nil},
		{"no image", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "" }, []string{"spec.containers[0].image: Required value", "spec.containers[0].image: Required value"}},
		{"nearer deadline", func(p *corev1.Pod) { *p.Spec.ActiveDeadlineSeconds = 5 }, nil},
		{"later deadline", func(p *corev1.Pod) { *p.Spec.ActiveDeadlineSeconds = deadline + 1 }, []string{"spec.activeDeadlineSeconds: Invalid value: 101: must be less than or equal to previous value"}},
		{"no deadline", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = nil }, []string{`spec.activeDeadlineSeconds: Invalid value: "null": must not update from a positive integer to nil value`}},
		{"another toleration", func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		}, nil},
		{"toleration seconds", func(p *corev1.Pod) { p.Spec.Tolerations[0].TolerationSeconds = &deadline }, nil},
		{"other toleration", func(p *corev1.Pod) { p.Spec.Tolerations[0].Key = "b" }, []string{"spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"}},
		{"new gate", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} },
			[]string{"spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"}},
		{"more containers", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d", Image: "i"})
		},
			[]string{"spec.containers: Forbidden: pod updates may not add or remove containers"}},
		{"other node", func(p *corev1.Pod) { p.Spec.NodeName = "m" }, []string{"spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"}},
		{"mirror", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}
		}, []string{
			"metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or update mirror pod annotation",
			"metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: may not add AppArmor annotations",
		}},
		{"status", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, nil},
	} {
		got, pod := changed(t, &s, old, tt.change)
		if len(got) != len(tt.want) {
			t.Errorf("%s: got %q", tt.name, got)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], tt.want[i]) {
				t.Errorf("%s: got %q, want it to begin with %q", tt.name, got[i], tt.want[i])
			}
		}
		if pod.Status.Phase != corev1.PodPending {
			t.Errorf("%s: the status changed", tt.name)
		}
	}
	got, _ := changed(t, &s, old, func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"secret"}; p.Spec.Hostname = "h" })
	if len(got) != 1 || !strings.HasSuffix(got[0], "\nchanged: spec.containers[0].args, spec.hostname") {
		t.Errorf("the message names what changed: %q", got)
	}
}

func TestGatedUpdate(t *testing.T) {
	s := pods.Resource(gates.New(release.Default).Enabled).Storage.Strategy
	old := stored(t, `{"metadata": {"name": "p"}, "spec": {"schedulingGates": [{"name": "g"}, {"name": "h"}], "nodeSelector": {"a": "b"}, "containers": [{"name": "c", "image": "i:1"}],
		"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}}}}}`)
	terms := func(p *corev1.Pod) *[]corev1.NodeSelectorTerm {
		return &p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"gate removed":   {func(p *corev1.Pod) { p.Spec.SchedulingGates = p.Spec.SchedulingGates[1:] }, ""},
		"label added":    {func(p *corev1.Pod) { p.Spec.NodeSelector["c"] = "d" }, ""},
		"label changed":  {func(p *corev1.Pod) { p.Spec.NodeSelector["a"] = "d" }, "spec.nodeSelector: Invalid value"},
		"term narrowed":  {func(p *corev1.Pod) { e := &(*terms(p))[0].MatchExpressions; *e = append(*e, (*e)[0]) }, ""},
		"term changed":   {func(p *corev1.Pod) { (*terms(p))[0].MatchExpressions[0].Key = "x" }, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: Invalid value"},
		"term added":     {func(p *corev1.Pod) { *terms(p) = append(*terms(p), (*terms(p))[0]) }, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Invalid value"},
		"affinity gone":  {func(p *corev1.Pod) { p.Spec.Affinity = nil }, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Invalid value"},
		"something else": {func(p *corev1.Pod) { p.Spec.Hostname = "h" }, "spec: Forbidden"},
	} {
		got, _ := changed(t, &s, old, tt.change)
		if tt.want == "" && len(got) != 0 || tt.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tt.want)) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestStatusUpdate(t *testing.T) {
	s := pods.Resource(gates.New(release.Default).Enabled).Sub("status").Update
	old := stored(t, `{"metadata": {"name": "p"}, "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "i:1"}]}}`)
	old.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"phase": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, nil},
		"quality of service": {func(p *corev1.Pod) { p.Status.QOSClass = corev1.PodQOSGuaranteed },
			[]string{`status.qosClass: Invalid value: "Guaranteed": field is immutable`}},
		"quality forgotten": {func(p *corev1.Pod) { p.Status.QOSClass = "" }, nil},
		"resurrection": {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = corev1.ContainerState{} },
			[]string{"status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"}},
		"addresses": {func(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "10.0.0.1"}} }, []string{
			`status.podIPs: Invalid value: []core.PodIP{core.PodIP{IP:"10.0.0.1"}, core.PodIP{IP:"10.0.0.1"}}: may specify no more than one IP for each IP family`,
			`status.podIPs[1]: Duplicate value: core.PodIP{IP:"10.0.0.1"}`,
		}},
		"both families": {func(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}} }, nil},
		"host":          {func(p *corev1.Pod) { p.Status.HostIPs = []corev1.HostIP{{IP: "10.0.0.1"}} }, []string{"status.hostIPs[0].ip: Invalid value: \"10.0.0.1\": must be equal to `hostIP`"}},
		"condition": {func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{{Type: "a b"}} }, []string{
			`metadata.conditions[0].Type: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`}},
	} {
		got, pod := changed(t, s, old, func(p *corev1.Pod) {
			p.Spec.NodeName = "ignored"
			p.OwnerReferences = []metav1.OwnerReference{{Name: "ignored"}}
			p.Labels = map[string]string{"kept": "yes"}
			tt.change(p)
		})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if pod.Spec.NodeName != "" || pod.OwnerReferences != nil || pod.Labels["kept"] != "yes" || pod.Status.QOSClass == "" {
			t.Errorf("%s: wrong parts were taken: %+v", name, pod)
		}
	}
}

func TestEphemeralContainers(t *testing.T) {
	s := pods.Resource(gates.New(release.Default).Enabled).Sub("ephemeralcontainers").Update
	add := func(p *corev1.Pod, name string) {
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "i"}})
	}
	_, old := changed(t, s, stored(t, small), func(p *corev1.Pod) {
		add(p, "dbg")
		p.Labels = map[string]string{"ignored": "yes"}
		p.Spec.Hostname = "ignored"
	})
	if len(old.Spec.EphemeralContainers) != 1 || old.Labels != nil || old.Spec.Hostname != "" {
		t.Fatalf("wrong parts were taken: %+v", old)
	}
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"another":   {func(p *corev1.Pod) { add(p, "e2") }, ""},
		"same name": {func(p *corev1.Pod) { add(p, "c") }, `spec.ephemeralContainers[1].name: Duplicate value: "c"`},
		"removed":   {func(p *corev1.Pod) { p.Spec.EphemeralContainers = nil }, `spec.ephemeralContainers: Forbidden: existing ephemeral containers "dbg" may not be removed`},
		"changed":   {func(p *corev1.Pod) { p.Spec.EphemeralContainers[0].Image = "j" }, `spec.ephemeralContainers: Forbidden: existing ephemeral containers "dbg" may not be changed`},
		"ports": {func(p *corev1.Pod) {
			add(p, "e2")
			p.Spec.EphemeralContainers[1].Ports = []corev1.ContainerPort{{ContainerPort: 1}}
		}, "spec.ephemeralContainers[1].ports: Forbidden: cannot be set for an Ephemeral Container"},
	} {
		got, _ := changed(t, s, old, tt.change)
		if tt.want == "" && len(got) != 0 || tt.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tt.want)) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	old.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	if got, _ := changed(t, s, old, func(p *corev1.Pod) { add(p, "e2") }); len(got) != 1 || !strings.Contains(got[0], "static pods do not support ephemeral containers") {
		t.Errorf("mirror pod: %q", got)
	}
}

func TestGracePeriod(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	for name, tt := range map[string]struct {
		node  string
		phase corev1.PodPhase
		asked *int64
		spec  *int64
		want  int64
	}{
		"the client's":  {"n", corev1.PodRunning, seconds(5), seconds(30), 5},
		"the spec's":    {"n", corev1.PodRunning, nil, seconds(30), 30},
		"not scheduled": {"", corev1.PodPending, seconds(5), seconds(30), 0},
		"ended":         {"n", corev1.PodSucceeded, seconds(5), seconds(30), 0},
		"negative":      {"n", corev1.PodRunning, seconds(-5), nil, 1},
		"none":          {"n", corev1.PodRunning, nil, nil, 0},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: tt.node, TerminationGracePeriodSeconds: tt.spec}, Status: corev1.PodStatus{Phase: tt.phase}}
		o := &metav1.DeleteOptions{GracePeriodSeconds: tt.asked}
		got, ok := pods.Resource(gates.New(release.Default).Enabled).Storage.Graceful(context.Background(), pod, o)
		if got != tt.want || !ok || *o.GracePeriodSeconds != tt.want {
			t.Errorf("%s: got %d %v, options %d, want %d", name, got, ok, *o.GracePeriodSeconds, tt.want)
		}
	}
}
