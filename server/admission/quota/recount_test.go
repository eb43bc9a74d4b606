package quota_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/admission/quota"
)

// held are the objects of a namespace, by resource; others are not known.
type held map[string][]runtime.Object

func (h held) Count(r schema.GroupResource) (int, bool) {
	list, known := h[r.String()]
	return len(list), known
}

func (h held) Each(r schema.GroupResource, visit func(runtime.Object) bool) bool {
	list, known := h[r.String()]
	for _, obj := range list {
		if !visit(obj) {
			break
		}
	}
	return known
}

// TestRecount: it counts what admission would have added up, of all resources and in all scopes;
// amounts that cannot be determined stay.
func TestRecount(t *testing.T) {
	now := time.Now()
	grace, deadline, class := int64(30), int64(60), "gold"
	running, ended := pod(container("c", list("cpu", "100m", "memory", "1Gi"), nil)), pod(container("c", list("cpu", "1"), nil))
	ended.Status.Phase = corev1.PodSucceeded
	late := pod(container("c", list("cpu", "2"), nil))
	late.DeletionTimestamp, late.DeletionGracePeriodSeconds = &metav1.Time{Time: now.Add(-time.Minute)}, &grace
	brief := pod(container("c", nil, nil))
	brief.Spec.ActiveDeadlineSeconds, brief.Spec.PriorityClassName = &deadline, "high"
	objects := held{
		"pods":       {running, ended, late, brief},
		"services":   {&corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 1}, {Port: 2}}}}, &corev1.Service{}},
		"configmaps": {&corev1.ConfigMap{}, &corev1.ConfigMap{}, &corev1.ConfigMap{}},
		"persistentvolumeclaims": {&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: list("storage", "5Gi")},
		}}},
		"widgets.example.com": {&corev1.ConfigMap{}, &corev1.ConfigMap{}},
		"deployments.apps":    {},
	}
	of := func(scopes ...corev1.ResourceQuotaScope) func(*corev1.ResourceQuota) {
		return func(q *corev1.ResourceQuota) { q.Spec.Scopes = scopes }
	}
	for name, c := range map[string]struct {
		hard   []string
		change func(*corev1.ResourceQuota)
		want   []string
	}{
		"pods":                {hard: []string{"pods", "9", "count/pods", "9", "requests.cpu", "9", "memory", "9Gi", "limits.cpu", "1"}, want: []string{"pods", "2", "count/pods", "4", "requests.cpu", "100m", "memory", "1Gi", "limits.cpu", "0"}},
		"best effort":         {hard: []string{"pods", "9"}, change: of("BestEffort"), want: []string{"pods", "1"}},
		"several scopes":      {hard: []string{"pods", "9"}, change: of("Terminating", "NotBestEffort"), want: []string{"pods", "0"}},
		"scopes, not of pods": {hard: []string{"pods", "9", "configmaps", "9"}, change: of("Terminating"), want: []string{"pods", "1", "configmaps", "0"}},
		"priority": {hard: []string{"pods", "9"}, want: []string{"pods", "1"}, change: func(q *corev1.ResourceQuota) {
			q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: "PriorityClass", Operator: "In", Values: []string{"high"}}}}
		}},
		"services": {hard: []string{"services", "9", "services.nodeports", "9", "services.loadbalancers", "0"}, want: []string{"services", "2", "services.nodeports", "2", "services.loadbalancers", "0"}},
		"claims": {
			hard: []string{"requests.storage", "9Gi", "gold.storageclass.storage.k8s.io/requests.storage", "9Gi", "lead.storageclass.storage.k8s.io/requests.storage", "9Gi", "persistentvolumeclaims", "9"},
			want: []string{"requests.storage", "5Gi", "gold.storageclass.storage.k8s.io/requests.storage", "5Gi", "lead.storageclass.storage.k8s.io/requests.storage", "0", "persistentvolumeclaims", "1"},
		},
		"numbers":          {hard: []string{"configmaps", "9", "count/configmaps", "9", "count/widgets.example.com", "9", "count/deployments.apps", "9"}, want: []string{"configmaps", "3", "count/configmaps", "3", "count/widgets.example.com", "2", "count/deployments.apps", "0"}},
		"what is unknown":  {hard: []string{"count/nothings.example.com", "9", "configmaps", "9", "count/events", "9"}, want: []string{"configmaps", "3"}},
		"what was counted": {hard: []string{"count/nothings.example.com", "9"}, want: []string{"count/nothings.example.com", "7"}, change: func(q *corev1.ResourceQuota) { q.Status.Used = list("count/nothings.example.com", "7", "pods", "1") }},
	} {
		t.Run(name, func(t *testing.T) {
			q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: list(c.hard...)}}
			if c.change != nil {
				c.change(q)
			}
			if !quota.Unmeasured(q) {
				t.Error("it counts as counted before it was")
			}
			other := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: list("pods", "1")}}
			got := quota.Recount([]*corev1.ResourceQuota{other, q}, objects, now)
			texts := func(l corev1.ResourceList) string {
				m := map[string]string{}
				for k, v := range l {
					m[string(k)] = v.String()
				}
				return fmt.Sprint(m)
			}
			if was, want := texts(got[1].Used), texts(list(c.want...)); was != want {
				t.Errorf("used %s, want %s", was, want)
			}
			if was, want := texts(got[1].Hard), texts(q.Spec.Hard); was != want {
				t.Errorf("hard %s, want %s", was, want)
			}
			if was := texts(got[0].Used); was != "map[pods:2]" {
				t.Errorf("another quota: %s", was)
			}
			q.Status = got[1]
			if quota.Unmeasured(q) != (name == "what is unknown") {
				t.Errorf("whether it is to be counted soon: %v", quota.Unmeasured(q))
			}
		})
	}
}

// TestSameStatus: amounts are compared, not how they are written.
func TestSameStatus(t *testing.T) {
	one := corev1.ResourceQuotaStatus{Hard: list("cpu", "1"), Used: list("cpu", "500m")}
	two := corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{"cpu": resource.MustParse("1000m")}, Used: list("cpu", "0.5")}
	if !quota.Same(&one, &two) {
		t.Error("the same amounts differ")
	}
	for _, other := range []corev1.ResourceQuotaStatus{{}, {Hard: one.Hard}, {Hard: one.Hard, Used: list("cpu", "1")}, {Hard: list("cpu", "2"), Used: one.Used}} {
		if quota.Same(&one, &other) {
			t.Errorf("the same as %v", other)
		}
	}
	if quota.Same(&corev1.ResourceQuotaStatus{}, &corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{}, Used: corev1.ResourceList{}}) {
		t.Error("an empty status equals one that counts zero")
	}
}

// TestRecountOfManyNames: a quota may have as many names as an object has room for, and is
// counted in a time that grows with them and not with their square.
func TestRecountOfManyNames(t *testing.T) {
	const names = 40_000
	q := limit("q")
	q.Spec.Hard = corev1.ResourceList{}
	objects := held{}
	for i := range names {
		q.Spec.Hard[corev1.ResourceName(fmt.Sprintf("count/r%d.example.com", i))] = resource.MustParse("1")
		objects[fmt.Sprintf("r%d.example.com", i)] = []runtime.Object{&corev1.ConfigMap{}}
	}
	status := quota.Recount([]*corev1.ResourceQuota{q, limit("other", "count/r7.example.com", "1")}, objects, time.Now())
	if got := status[0].Used["count/r8.example.com"]; len(status[0].Used) != names || got.Value() != 1 {
		t.Errorf("%d are counted, and of one %s", len(status[0].Used), got.String())
	}
	if got := status[1].Used["count/r7.example.com"]; len(status[1].Used) != 1 || got.Value() != 1 {
		t.Errorf("the other: %v", status[1].Used)
	}
}
