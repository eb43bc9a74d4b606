package builtin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
	storagemigrationv1alpha1 "github.com/rowlock/rowlock/server/removed/k8s.io/api/storagemigration/v1alpha1"
)

// TestTablesOfReleases holds columns and cells that are not the same in all releases.
func TestTablesOfReleases(t *testing.T) {
	ended := func(code int32, reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}
	}
	ready := corev1.ContainerStatus{Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	pod := func(list ...corev1.ContainerStatus) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: list}}
	}
	alive := pod(ended(0, "Completed"), ended(2, "Error"), ready)
	alive.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	job := func(conditions ...batchv1.JobConditionType) *batchv1.Job {
		j := &batchv1.Job{}
		for _, c := range conditions {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue})
		}
		return j
	}
	named := func(name, annotation string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotation: "true"}}
	}
	amounts := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}
	core := func(plural string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: plural}
	}
	jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	of := map[release.Version]map[schema.GroupVersionResource]kinds.Columns{}
	for _, v := range []release.Version{release.V132, release.V133, release.V136} {
		of[v] = map[schema.GroupVersionResource]kinds.Columns{}
		for _, r := range (builtin.Config{Release: v}).Resources() {
			of[v][r.GVR()] = r.Columns
		}
	}
	show := func(c kinds.Columns, obj kinds.Object, at ...int) string {
		cells := c.Cells(obj, time.Now())
		var out []string
		for _, i := range at {
			out = append(out, fmt.Sprintf("%s=%v", c.Definitions[i].Name, cells[i]))
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct {
		of         schema.GroupVersionResource
		obj        kinds.Object
		at         []int
		old, since string
	}{
		{core("serviceaccounts"), &corev1.ServiceAccount{}, []int{1}, "Secrets=0", "Age=<unknown>"},
		{core("resourcequotas"), &corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Hard: amounts, Used: amounts}}, []int{1, 2, 3}, "Age=<unknown> Request=pods: 2/2 Limit=", "Request=pods: 2/2 Limit= Age=<unknown>"},
		{core("nodes"), &corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KernelVersion: "6.1", Architecture: "amd64"}}}, []int{8}, "Kernel-Version=6.1", "Kernel-Version=6.1 (amd64)"},
		{core("nodes"), &corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{Architecture: "arm64"}}}, []int{8}, "Kernel-Version=<unknown>", "Kernel-Version=<unknown> (arm64)"},
		{core("nodes"), &corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KernelVersion: "6.1"}}}, []int{8}, "Kernel-Version=6.1", "Kernel-Version=6.1"},
		{core("pods"), pod(ended(0, "Completed"), ended(2, "Error")), []int{2}, "Status=Completed", "Status=Error"},
		{core("pods"), pod(ended(0, "Completed"), ended(2, "Error"), ready), []int{2}, "Status=NotReady", "Status=Error"},
		{core("pods"), pod(ended(0, "Completed"), ready), []int{2}, "Status=NotReady", "Status=NotReady"},
		{core("pods"), alive, []int{2}, "Status=Running", "Status=Running"},
		{jobs, job(batchv1.JobSuccessCriteriaMet), []int{1}, "Status=Running", "Status=SuccessCriteriaMet"},
		{jobs, job(batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget), []int{1}, "Status=FailureTarget", "Status=FailureTarget"},
		{schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses"},
			&networkingv1.IngressClass{ObjectMeta: named("a", networkingv1.AnnotationIsDefaultIngressClass)}, []int{0}, "Name=a", "Name=a (default)"},
		{schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1beta1", Resource: "volumeattributesclasses"},
			&storagev1.VolumeAttributesClass{ObjectMeta: named("a", "volumeattributesclass.alpha.kubernetes.io/is-default-class")}, []int{0}, "Name=a (default)", "Name=a"},
	} {
		if got := show(of[release.V132][c.of], c.obj, c.at...); got != c.old {
			t.Errorf("%v of 1.32: %q, want %q", c.of, got, c.old)
		}
		for _, v := range []release.Version{release.V133, release.V136} {
			if got := show(of[v][c.of], c.obj, c.at...); got != c.since {
				t.Errorf("%v of %v: %q, want %q", c.of, v, got, c.since)
			}
		}
	}
	for _, r := range (builtin.Config{Release: release.V136}).Resources() {
		for _, d := range r.Columns.Definitions {
			if strings.Contains(d.Description, "configration") {
				t.Errorf("%v, column %s: %s", r.GVR(), d.Name, d.Description)
			}
		}
	}
	m := &storagemigrationv1alpha1.StorageVersionMigration{
		Spec: storagemigrationv1alpha1.StorageVersionMigrationSpec{Resource: storagemigrationv1alpha1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}},
		Status: storagemigrationv1alpha1.StorageVersionMigrationStatus{Conditions: []storagemigrationv1alpha1.MigrationCondition{
			{Type: storagemigrationv1alpha1.MigrationRunning, Status: corev1.ConditionFalse}, {Type: storagemigrationv1alpha1.MigrationSucceeded, Status: corev1.ConditionTrue},
		}},
	}
	resources := builtin.Config{Release: release.V135}.Resources()
	at := slices.IndexFunc(resources, func(r *kinds.Resource) bool { return r.Plural == "storageversionmigrations" })
	if got, want := show(resources[at].Columns, m, 1, 2), "Resource=deployments.apps Status=Succeeded"; got != want {
		t.Errorf("migrations: %q, want %q", got, want)
	}
}
