package million

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Pod returns one Pod, running, as a server stores it.
func (s Shape) Pod(i int) *corev1.Pod {
	r := s.chance(ofPods, i)
	_ = suffix(r, 5) // skips the suffix of the name
	name := s.PodName(i)
	made := metav1.NewTime(epoch.Add(time.Duration(i%86400) * time.Second))
	address := fmt.Sprintf("10.%d.%d.%d", 64+i>>16&63, i>>8&255, i&255)
	host := fmt.Sprintf("172.%d.%d.%d", 16+s.NodeOf(i)>>16&15, s.NodeOf(i)>>8&255, s.NodeOf(i)&255)
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: s.podMeta(i, name, r, made),
		Spec:       s.podSpec(i, r),
	}
	p.Status = status(&p.Spec, r, made, address, host)
	return p
}

func (s Shape) podMeta(i int, name string, r *rand.Rand, made metav1.Time) metav1.ObjectMeta {
	set := i / podsOfAReplicaSet
	app, tier := s.app(set), tiers[i%len(tiers)]
	later := metav1.NewTime(made.Add(9 * time.Second))
	return metav1.ObjectMeta{
		Name: name, GenerateName: s.replicaSetName(set) + "-", Namespace: s.Namespace(s.NamespaceOf(i)),
		UID: types.UID(uid(r)), CreationTimestamp: made,
		Labels:      map[string]string{"app": app, "tier": tier, "pod-template-hash": s.hash(set)},
		Annotations: map[string]string{"checksum/config": digest(s.chance(ofReplicaSets, set)), "prometheus.io/scrape": "true"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: s.replicaSetName(set), UID: s.replicaSetUID(set), Controller: yes(), BlockOwnerDeletion: yes(),
		}},
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &made, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(madeFields)}},
			{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &later, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(statusFields)}, Subresource: "status"},
		},
	}
}

// The fields that the two writers of a Pod own. They are the same in all Pods of a kind, as in a
// real cluster, so that they compress well.
const (
	madeFields = `{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{},"f:tier":{}},` +
		`"f:ownerReferences":{".":{},"k:{\"uid\":\"00000000-0000-4000-8000-000000000000\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{".":{}},"f:image":{},"f:name":{},"f:resources":{}}},"f:restartPolicy":{}}}`
	statusFields = `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:phase":{},"f:podIP":{},"f:startTime":{}}}`
)

func (s Shape) podSpec(i int, r *rand.Rand) corev1.PodSpec {
	set := i / podsOfAReplicaSet
	token := "kube-api-access-" + suffix(r, 5)
	main := corev1.Container{
		Name: "main", Image: fmt.Sprintf("registry.example/%s/%s:1.%d.%d", s.Namespace(s.NamespaceOf(i)), s.app(set), set%17, set%5),
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Env:   environment(s.chance(ofReplicaSets, set)),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("256Mi")},
		},
		VolumeMounts:   []corev1.VolumeMount{{Name: token, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
		ReadinessProbe: probe(), ImagePullPolicy: corev1.PullIfNotPresent,
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	return corev1.PodSpec{
		Volumes: []corev1.Volume{tokenVolume(token)}, Containers: []corev1.Container{main},
		RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: number(30), DNSPolicy: corev1.DNSClusterFirst,
		ServiceAccountName: "default", DeprecatedServiceAccount: "default", NodeName: s.Node(s.NodeOf(i)), SecurityContext: &corev1.PodSecurityContext{},
		SchedulerName: corev1.DefaultSchedulerName, Priority: new(int32), EnableServiceLinks: yes(), PreemptionPolicy: preempts(),
		Tolerations: []corev1.Toleration{
			{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: number(300)},
			{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: number(300)},
		},
	}
}

// environment returns the environment variables of all Pods of one ReplicaSet.
func environment(r *rand.Rand) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, n := range []string{"DATABASE_HOST", "OTEL_EXPORTER_ENDPOINT"} {
		out = append(out, corev1.EnvVar{Name: n, Value: strings.ToLower(n) + "." + suffix(r, 12) + ".svc.example"})
	}
	return out
}

func tokenVolume(name string) corev1.Volume {
	mode, life := int32(0o644), int64(3607)
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &life, Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
	}}}}
}

func probe() *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080), Scheme: corev1.URISchemeHTTP}},
		TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
	}
}

func status(spec *corev1.PodSpec, r *rand.Rand, made metav1.Time, address, host string) corev1.PodStatus {
	started := metav1.NewTime(made.Add(8 * time.Second))
	c := spec.Containers[0]
	image := c.Image[:strings.LastIndexByte(c.Image, ':')]
	st := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: host, HostIPs: []corev1.HostIP{{IP: host}}, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		StartTime: &made, QOSClass: corev1.PodQOSBurstable,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: c.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}, Ready: true, Started: yes(),
			Image: c.Image, ImageID: image + "@sha256:" + digest(r), ContainerID: "containerd://" + digest(r),
		}},
	}
	for _, t := range []corev1.PodConditionType{"PodReadyToStartContainers", corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		st.Conditions = append(st.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: started})
	}
	return st
}

func yes() *bool { b := true; return &b }

func number(n int64) *int64 { return &n }

func preempts() *corev1.PreemptionPolicy { p := corev1.PreemptLowerPriority; return &p }
