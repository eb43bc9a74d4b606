package million

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (s Shape) namespace(i int) *corev1.Namespace {
	name := s.Namespace(i)
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(uid(s.chance(ofNamespaces, i))), CreationTimestamp: metav1.NewTime(epoch), Labels: map[string]string{corev1.LabelMetadataName: name},
		},
		Spec:   corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
}

// account returns the ServiceAccount of the Pods of a namespace.
func (s Shape) account(i int) *corev1.ServiceAccount {
	r := s.chance(ofNamespaces, i)
	_ = uid(r) // skips the namespace's own
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: s.Namespace(i), UID: types.UID(uid(r)), CreationTimestamp: metav1.NewTime(epoch)},
	}
}

func (s Shape) node(i int) *corev1.Node {
	r := s.chance(ofNodes, i)
	id := types.UID(uid(r))
	address := fmt.Sprintf("172.%d.%d.%d", 16+i>>16&15, i>>8&255, i&255)
	size := corev1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	n := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Node(i), UID: id, CreationTimestamp: metav1.NewTime(epoch),
			Labels: map[string]string{corev1.LabelHostname: s.Node(i), corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3), corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"},
		},
		Spec: corev1.NodeSpec{ProviderID: "example:///" + suffix(r, 17)},
		Status: corev1.NodeStatus{
			Capacity: size, Allocatable: size,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: s.Node(i)}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: digest(r)[:32], SystemUUID: uid(r), BootID: uid(r), KernelVersion: "6.1.0", OSImage: "Linux", ContainerRuntimeVersion: "containerd://1.7.24",
				KubeletVersion: "v1.32.0", OperatingSystem: "linux", Architecture: "amd64",
			},
		},
	}
	for _, t := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		c := corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficient", Message: "kubelet has enough", LastHeartbeatTime: metav1.NewTime(epoch), LastTransitionTime: metav1.NewTime(epoch)}
		if t == corev1.NodeReady {
			c.Status, c.Reason, c.Message = corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"
		}
		n.Status.Conditions = append(n.Status.Conditions, c)
	}
	return n
}

func (s Shape) lease(i int) *coordinationv1.Lease {
	name, life, renewed := s.Node(i), int32(40), metav1.NewMicroTime(epoch.Add(time.Duration(i%10)*time.Second))
	return &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: corev1.NamespaceNodeLease, UID: types.UID(uid(s.chance(ofLeases, i))), CreationTimestamp: metav1.NewTime(epoch),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(uid(s.chance(ofNodes, i)))}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &life, RenewTime: &renewed},
	}
}

func (s Shape) replicaSetUID(i int) types.UID {
	r := s.chance(ofReplicaSets, i)
	_ = suffix(r, 10) // skips the hash
	return types.UID(uid(r))
}

func (s Shape) replicaSet(i int) *appsv1.ReplicaSet {
	first := s.Pod(i * podsOfAReplicaSet)
	replicas := int32(min(podsOfAReplicaSet, s.Pods-i*podsOfAReplicaSet))
	labels := map[string]string{"app": s.app(i), "pod-template-hash": s.hash(i)}
	set := &appsv1.ReplicaSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{
			Name: s.replicaSetName(i), Namespace: first.Namespace, UID: s.replicaSetUID(i), Generation: 1, CreationTimestamp: metav1.NewTime(epoch), Labels: labels,
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
		Status: appsv1.ReplicaSetStatus{Replicas: replicas, FullyLabeledReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas, ObservedGeneration: 1},
	}
	template := &set.Spec.Template.Spec
	*template = first.Spec
	template.NodeName, template.Volumes, template.Tolerations, template.ServiceAccountName, template.DeprecatedServiceAccount = "", nil, nil, "", ""
	template.Priority, template.EnableServiceLinks, template.PreemptionPolicy = nil, nil, nil
	template.Containers[0].VolumeMounts = nil
	return set
}
