package scheduling_test

import (
	"context"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/pods"
	"github.com/rowlock/rowlock/server/admission/scheduling"
	"github.com/rowlock/rowlock/server/admission/storage"
	"github.com/rowlock/rowlock/server/kinds"
	schedulingv1alpha2 "github.com/rowlock/rowlock/server/removed/k8s.io/api/scheduling/v1alpha2"
)

// stored are objects by storage and name.
type stored map[string]kinds.Object

func (s stored) Get(_ context.Context, storage, _, name string) (kinds.Object, error) {
	if obj, ok := s[storage+"/"+name]; ok {
		return obj, nil
	}
	return nil, nil
}

func (s stored) List(_ context.Context, storage, _ string, _ func([]byte) bool) (list []kinds.Object, _ error) {
	for at, obj := range s {
		if at == storage+"/"+obj.GetName() {
			list = append(list, obj)
		}
	}
	return list, nil
}

func write(op admission.Operation, group, plural string, obj, old kinds.Object) *admission.Attributes {
	a := &admission.Attributes{Operation: op, Resource: &kinds.Resource{Group: group, Plural: plural}, Namespace: obj.GetNamespace(), Name: obj.GetName(), Object: obj}
	if old != nil {
		a.Old = old
	}
	return a
}

func group(change ...func(*schedulingv1alpha2.PodGroup)) *schedulingv1alpha2.PodGroup {
	g := &schedulingv1alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g"}}
	for _, f := range change {
		f(g)
	}
	return g
}

func check(t *testing.T, what string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && err.Error() != want {
		t.Errorf("%s: got %v, want %q", what, err, want)
	}
}

const forbidden = `podgroups.scheduling.k8s.io "g" is forbidden: `

func TestWorkloadExists(t *testing.T) {
	now := metav1.Now()
	p := scheduling.WorkloadExists(stored{
		"workloads.scheduling.k8s.io/w": &schedulingv1alpha2.Workload{
			ObjectMeta: metav1.ObjectMeta{Name: "w"}, Spec: schedulingv1alpha2.WorkloadSpec{PodGroupTemplates: []schedulingv1alpha2.PodGroupTemplate{{Name: "a"}, {Name: "b"}}},
		},
		"workloads.scheduling.k8s.io/going": &schedulingv1alpha2.Workload{ObjectMeta: metav1.ObjectMeta{Name: "going", DeletionTimestamp: &now}},
	})
	of := func(workload, template string) *schedulingv1alpha2.PodGroup {
		return group(func(g *schedulingv1alpha2.PodGroup) {
			g.Spec.PodGroupTemplateRef = &schedulingv1alpha2.PodGroupTemplateReference{Workload: &schedulingv1alpha2.WorkloadPodGroupTemplateReference{WorkloadName: workload, PodGroupTemplateName: template}}
		})
	}
	for what, c := range map[string]struct {
		g    *schedulingv1alpha2.PodGroup
		want string
	}{
		"of none":            {group(), ""},
		"of a workload":      {of("w", "b"), ""},
		"no such template":   {of("w", "c"), forbidden + `PodGroup rejected: PodGroupTemplate "c" not found in Workload "w"`},
		"no such workload":   {of("x", "a"), forbidden + `PodGroup rejected: Workload "x" not found`},
		"workload that goes": {of("going", "a"), forbidden + `PodGroup rejected: Workload "going" is being deleted`},
	} {
		check(t, what, p.Validate(t.Context(), write(admission.Create, "scheduling.k8s.io", "podgroups", c.g, nil)), c.want)
	}
}

func TestJobs(t *testing.T) {
	gang := func(name, owner string) *schedulingv1alpha2.PodGroup {
		return group(func(g *schedulingv1alpha2.PodGroup) {
			yes := true
			g.Name, g.Spec.SchedulingPolicy.Gang = name, &schedulingv1alpha2.GangSchedulingPolicy{MinCount: 4}
			g.OwnerReferences = []metav1.OwnerReference{{UID: "x"}, {UID: "job-uid", Controller: &yes}}
			g.OwnerReferences = g.OwnerReferences[:len(owner)]
		})
	}
	const groups = "podgroups.scheduling.k8s.io/"
	one, two := int32(1), int32(2)
	job := func(parallelism *int32, group string) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j", UID: "job-uid"}}
		if j.Spec.Parallelism = parallelism; group != "" {
			j.Spec.Template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		}
		return j
	}
	const refused = `jobs.batch "j" is forbidden: cannot change parallelism for a Job referencing gang-scheduled PodGroup "`
	for what, c := range map[string]struct {
		there    stored
		old, now *batchv1.Job
		want     string
	}{
		"named":            {stored{groups + "g": gang("g", "")}, job(&one, "g"), job(&two, "g"), refused + `g"`},
		"named, same":      {stored{groups + "g": gang("g", "")}, job(&one, "g"), job(&one, "g"), ""},
		"named, absent":    {stored{groups + "h": gang("h", "xy")}, job(&one, "g"), job(&two, "g"), ""},
		"named, not gang":  {stored{groups + "g": group()}, job(&one, "g"), job(&two, "g"), ""},
		"controlled":       {stored{groups + "h": gang("h", "xy")}, job(&one, ""), job(nil, ""), refused + `h"`},
		"owned by another": {stored{groups + "h": gang("h", "x")}, job(&one, ""), job(&two, ""), ""},
		"no groups":        {nil, job(&one, ""), job(&two, ""), ""},
	} {
		p := scheduling.Jobs(c.there)
		check(t, what, p.Validate(t.Context(), write(admission.Update, "batch", "jobs", c.now, c.old)), c.want)
	}
	check(t, "not served", scheduling.Jobs(nil).Validate(t.Context(), write(admission.Update, "batch", "jobs", job(&two, "g"), job(&one, "g"))), "")
}

// TestProtection: new PodGroups and classes of attributes get their finalizer once.
func TestProtection(t *testing.T) {
	class := func() kinds.Object { return &storagev1.VolumeAttributesClass{} }
	for _, c := range []struct {
		plugin        admission.Mutator
		group, plural string
		obj           kinds.Object
		want          []string
	}{
		{scheduling.Protection(), "scheduling.k8s.io", "podgroups", group(), []string{"scheduling.k8s.io/podgroup-protection"}},
		{scheduling.Protection(), "scheduling.k8s.io", "workloads", &schedulingv1alpha2.Workload{}, nil},
		{storage.Protection(true), "storage.k8s.io", "volumeattributesclasses", class(), []string{"kubernetes.io/vac-protection"}},
		{storage.Protection(false), "storage.k8s.io", "volumeattributesclasses", class(), nil},
	} {
		for range 2 {
			if err := c.plugin.Admit(t.Context(), write(admission.Create, c.group, c.plural, c.obj, nil)); err != nil || !slices.Equal(c.obj.GetFinalizers(), c.want) {
				t.Errorf("%s: %v %v, want %v", c.plural, c.obj.GetFinalizers(), err, c.want)
			}
		}
	}
}

func TestPriorityOfGroups(t *testing.T) {
	p := pods.Priority{Groups: true, Objects: stored{
		"priorityclasses.scheduling.k8s.io/high": &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7},
		"priorityclasses.scheduling.k8s.io/std":  &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "std"}, Value: 3, GlobalDefault: true},
	}}
	seven := int32(7)
	for _, c := range []struct {
		class    string
		priority *int32
		want     int32
		name     string
		refusal  string
	}{
		{"high", nil, 7, "high", ""},
		{"high", &seven, 7, "high", ""},
		{"", nil, 3, "std", ""},
		{"", &seven, 0, "", forbidden + "priority set in the pod group (7) must match the priority computed (3) based on the priority class set in the spec"},
		{"low", nil, 0, "", forbidden + "no PriorityClass with name low was found"},
	} {
		g := group(func(g *schedulingv1alpha2.PodGroup) { g.Spec.PriorityClassName, g.Spec.Priority = c.class, c.priority })
		err := p.Admit(t.Context(), write(admission.Create, "scheduling.k8s.io", "podgroups", g, nil))
		check(t, c.class, err, c.refusal)
		if err == nil && (g.Spec.PriorityClassName != c.name || g.Spec.Priority == nil || *g.Spec.Priority != c.want) {
			t.Errorf("%q: %+v", c.class, g.Spec)
		}
	}
	g := group()
	if err := (pods.Priority{Objects: p.Objects}).Admit(t.Context(), write(admission.Create, "scheduling.k8s.io", "podgroups", g, nil)); err != nil || g.Spec.Priority != nil {
		t.Errorf("without the gate: %v %+v", err, g.Spec)
	}
}
