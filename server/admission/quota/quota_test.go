package quota_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/quota"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// store keeps quotas as a server would: a status is taken only with the newest version.
type store struct {
	mu     sync.Mutex
	quotas map[string]*corev1.ResourceQuota
	writes int
	lose   int // so many writes are beaten by another one
}

func storeOf(list ...*corev1.ResourceQuota) *store {
	s := &store{quotas: map[string]*corev1.ResourceQuota{}}
	for _, q := range list {
		q.ResourceVersion = "1"
		s.quotas[q.Name] = q
	}
	return s
}

func (s *store) List(context.Context, string, string, func([]byte) bool) ([]kinds.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []kinds.Object
	for _, q := range s.quotas {
		out = append(out, q.DeepCopy())
	}
	return out, nil
}

func (*store) CatchUp(context.Context) error { return nil }

func (s *store) SetStatus(ctx context.Context, q *corev1.ResourceQuota) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sqlstore.Leading(ctx) != "" {
		return sqlstore.ErrLeadLost
	}
	s.writes++
	have := s.quotas[q.Name]
	r := corev1.Resource("resourcequotas")
	if have == nil {
		return apierrors.NewNotFound(r, q.Name)
	}
	if s.lose > 0 {
		s.lose--
		s.bump(have)
	}
	if have.ResourceVersion != q.ResourceVersion {
		return apierrors.NewConflict(r, q.Name, errors.New("changed"))
	}
	next := q.DeepCopy()
	s.bump(next)
	s.quotas[q.Name] = next
	return nil
}

func (*store) bump(q *corev1.ResourceQuota) {
	n, _ := strconv.Atoi(q.ResourceVersion)
	q.ResourceVersion = strconv.Itoa(n + 1)
}

func (s *store) used(name, of string) string {
	q := s.quotas[name].Status.Used[corev1.ResourceName(of)]
	return q.String()
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// limit returns a quota that has counted nothing so far.
func limit(name string, pairs ...string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n"}}
	q.Spec.Hard = list(pairs...)
	q.Status.Hard = q.Spec.Hard
	q.Status.Used = corev1.ResourceList{}
	for n := range q.Spec.Hard {
		q.Status.Used[n] = resource.MustParse("0")
	}
	return q
}

func write(op admission.Operation, group, plural string, obj, old runtime.Object) *admission.Attributes {
	return &admission.Attributes{
		Operation: op, Resource: &kinds.Resource{Group: group, Plural: plural, Namespaced: true},
		Namespace: "n", Object: obj, Old: old,
	}
}

func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func pod(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: containers}}
}

func forbidden(plural, name, reason string) string {
	return fmt.Sprintf("%s %q is forbidden: %s", plural, name, reason)
}

func TestCharges(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	init := pod(container("a", list("cpu", "100m"), nil), container("b", list("cpu", "200m"), nil))
	init.Spec.InitContainers = []corev1.Container{
		container("goes-on", list("cpu", "50m"), nil), container("first", list("cpu", "500m"), nil), container("second", list("cpu", "20m"), nil),
	}
	init.Spec.InitContainers[0].RestartPolicy = &always
	init.Spec.Overhead = list("cpu", "1m", "memory", "1Mi")
	unlimited := pod(container("a", nil, list("cpu", "0", "memory", "2Mi")))
	unlimited.Spec.Overhead = init.Spec.Overhead
	balancer := func(allocate bool) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: &allocate, Ports: []corev1.ServicePort{{Port: 1}, {Port: 2, NodePort: 30001}},
		}}
	}
	plain := balancer(true)
	plain.Spec.Type = corev1.ServiceTypeClusterIP
	gold := "gold"
	claim := func(size string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &gold, Resources: corev1.VolumeResourceRequirements{Requests: list("storage", size)},
		}}
	}
	urgent, late := pod(container("a", nil, nil)), pod(container("a", nil, nil))
	urgent.Spec.PriorityClassName = "urgent"
	deadline := int64(5)
	late.Spec.ActiveDeadlineSeconds = &deadline
	scoped := func(q *corev1.ResourceQuota, scopes ...corev1.ResourceQuotaScope) *corev1.ResourceQuota {
		q.Spec.Scopes = scopes
		return q
	}
	selected := limit("q", "pods", "0")
	selected.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"urgent"}},
	}}
	fast, faster := "fast", "faster"
	ofClass := limit("q", "persistentvolumeclaims", "0")
	ofClass.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopeVolumeAttributesClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{fast}},
	}}
	quick, quicker, was := claim("1Gi"), claim("1Gi"), claim("1Gi")
	quick.Spec.VolumeAttributesClassName, quicker.Spec.VolumeAttributesClassName = &fast, &faster
	was.Spec.VolumeAttributesClassName, was.Status.CurrentVolumeAttributesClassName = &faster, &fast
	tooFast := forbidden("persistentvolumeclaims", "c", "exceeded quota: q, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0")
	uncounted := limit("q", "pods", "1", "requests.nvidia.com/gpu", "1")
	uncounted.Status.Used = nil
	early := limit("q", "pods", "0")
	early.Status = corev1.ResourceQuotaStatus{}
	for name, c := range map[string]struct {
		quota *corev1.ResourceQuota
		write *admission.Attributes
		used  map[string]string
		err   string
	}{
		"init containers, overhead": {
			quota: limit("q", "requests.cpu", "2", "pods", "9", "count/pods", "9"),
			write: write(admission.Create, "", "pods", init, nil),
			used:  map[string]string{"requests.cpu": "551m", "pods": "1", "count/pods": "1"},
		},
		"overhead, no limit": {
			quota: limit("q", "limits.cpu", "2", "limits.memory", "4Mi"),
			write: write(admission.Create, "", "pods", unlimited, nil),
			used:  map[string]string{"limits.cpu": "0", "limits.memory": "3Mi"},
		},
		"other resources": {
			quota: limit("q", "requests.nvidia.com/gpu", "2", "hugepages-2Mi", "4Mi", "requests.hugepages-2Mi", "4Mi", "limits.ephemeral-storage", "2Gi"),
			write: write(admission.Create, "", "pods", pod(container("a", list("nvidia.com/gpu", "2", "hugepages-2Mi", "4Mi"), list("ephemeral-storage", "1Gi"))), nil),
			used:  map[string]string{"requests.nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi", "limits.ephemeral-storage": "1Gi"},
		},
		"too much": {
			quota: limit("q", "cpu", "1", "memory", "1Gi", "pods", "1"),
			write: write(admission.Create, "", "pods", pod(container("a", list("cpu", "2", "memory", "2Gi"), nil)), nil),
			err:   forbidden("pods", "p", "exceeded quota: q, requested: cpu=2,memory=2Gi, used: cpu=0,memory=0, limited: cpu=1,memory=1Gi"),
		},
		"not named": {
			quota: limit("q", "limits.cpu", "1", "requests.memory", "1", "requests.ephemeral-storage", "1"),
			write: write(admission.Create, "", "pods", pod(container("b", nil, list("cpu", "1")), container("a", nil, nil)), nil),
			err:   forbidden("pods", "p", "failed quota: q: must specify limits.cpu for: a; requests.memory for: a,b"),
		},
		"never counted": {
			quota: uncounted, write: write(admission.Create, "", "pods", pod(container("a", nil, nil)), nil),
			err: forbidden("pods", "p", "status unknown for quota: q, resources: pods,requests.nvidia.com/gpu"),
		},
		"not limited yet":     {quota: early, write: write(admission.Create, "", "pods", pod(), nil)},
		"updates of pods":     {quota: limit("q", "pods", "0"), write: write(admission.Update, "", "pods", pod(), pod())},
		"priority":            {quota: selected.DeepCopy(), write: write(admission.Create, "", "pods", urgent, nil), err: forbidden("pods", "p", "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0")},
		"another priority":    {quota: selected.DeepCopy(), write: write(admission.Create, "", "pods", pod(container("a", nil, nil)), nil), used: map[string]string{"pods": "0"}},
		"class of attributes": {quota: ofClass.DeepCopy(), write: write(admission.Create, "", "persistentvolumeclaims", quick, nil), err: tooFast},
		"another class":       {quota: ofClass.DeepCopy(), write: write(admission.Create, "", "persistentvolumeclaims", quicker, nil), used: map[string]string{"persistentvolumeclaims": "0"}},
		"the class it has":    {quota: ofClass.DeepCopy(), write: write(admission.Create, "", "persistentvolumeclaims", was, nil), err: tooFast},
		"no class":            {quota: ofClass.DeepCopy(), write: write(admission.Create, "", "persistentvolumeclaims", claim("1Gi"), nil), used: map[string]string{"persistentvolumeclaims": "0"}},
		"in scope":            {quota: scoped(limit("q", "pods", "1"), "Terminating", "BestEffort"), write: write(admission.Create, "", "pods", late, nil), used: map[string]string{"pods": "1"}},
		"out of scope":        {quota: scoped(limit("q", "pods", "0"), "Terminating", "NotBestEffort"), write: write(admission.Create, "", "pods", late, nil), used: map[string]string{"pods": "0"}},
		"scopes are of pods":  {quota: scoped(limit("q", "count/pods", "0", "configmaps", "0"), "BestEffort"), write: write(admission.Create, "", "configmaps", &corev1.ConfigMap{}, nil)},
		"balancer": {
			quota: limit("q", "services.nodeports", "2", "services.loadbalancers", "1", "services", "1"),
			write: write(admission.Create, "", "services", balancer(true), nil),
			used:  map[string]string{"services.nodeports": "2", "services.loadbalancers": "1", "services": "1"},
		},
		"balancer without ports": {
			quota: limit("q", "services.nodeports", "2"), write: write(admission.Create, "", "services", balancer(false), nil),
			used: map[string]string{"services.nodeports": "1"},
		},
		"a service becomes a balancer": {
			quota: limit("q", "services.loadbalancers", "0", "services", "0"), write: write(admission.Update, "", "services", balancer(true), plain),
			err: forbidden("services", "s", "exceeded quota: q, requested: services.loadbalancers=1, used: services.loadbalancers=0, limited: services.loadbalancers=0"),
		},
		"and the other way": {
			quota: limit("q", "services.loadbalancers", "0"), write: write(admission.Update, "", "services", plain, balancer(true)),
			used: map[string]string{"services.loadbalancers": "0"},
		},
		"claim": {
			quota: limit("q", "requests.storage", "1Gi", "gold.storageclass.storage.k8s.io/requests.storage", "3", "gold.storageclass.storage.k8s.io/persistentvolumeclaims", "1"),
			write: write(admission.Create, "", "persistentvolumeclaims", claim("1500m"), nil),
			used:  map[string]string{"requests.storage": "2", "gold.storageclass.storage.k8s.io/requests.storage": "2", "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1"},
		},
		"claim grows": {
			quota: limit("q", "requests.storage", "1Gi"), write: write(admission.Update, "", "persistentvolumeclaims", claim("3Gi"), claim("1Gi")),
			err: forbidden("persistentvolumeclaims", "c", "exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=0, limited: requests.storage=1Gi"),
		},
		"objects of any kind": {
			quota: limit("q", "count/deployments.apps", "0"), write: write(admission.Create, "apps", "deployments", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "d"}}, nil),
			err: "deployments.apps \"d\" is forbidden: exceeded quota: q, requested: count/deployments.apps=1, used: count/deployments.apps=0, limited: count/deployments.apps=0",
		},
		"both names": {
			quota: limit("q", "secrets", "4", "count/secrets", "4"), write: write(admission.Create, "", "secrets", &corev1.Secret{}, nil),
			used: map[string]string{"secrets": "1", "count/secrets": "1"},
		},
		"events are free": {quota: limit("q", "count/events", "0"), write: write(admission.Create, "", "events", &corev1.Event{}, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			s := storeOf(c.quota)
			p := quota.New(s, nil, quota.Rules{}, time.Now)
			err := p.Validate(t.Context(), c.write)
			if got := fmt.Sprint(err); c.err == "" && err != nil || c.err != "" && got != c.err {
				t.Errorf("error %q, want %q", got, c.err)
			}
			for of, want := range c.used {
				if got := s.used("q", of); got != want {
					t.Errorf("%s: used %s, want %s", of, got, want)
				}
			}
		})
	}
}

// TestMoves: since release 1.33, an object that an update takes into the scope of a quota uses it: a Pod that gets a
// deadline, and a claim whose status names another class of attributes.
func TestMoves(t *testing.T) {
	selected := func(q *corev1.ResourceQuota, scope corev1.ResourceQuotaScope, op corev1.ScopeSelectorOperator, values ...string) *corev1.ResourceQuota {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: scope, Operator: op, Values: values}}}
		return q
	}
	ends := func(pods string) *corev1.ResourceQuota {
		return selected(limit("q", "pods", pods), corev1.ResourceQuotaScopeTerminating, corev1.ScopeSelectorOpExists)
	}
	gold := func(storage string) *corev1.ResourceQuota {
		return selected(limit("q", "persistentvolumeclaims", "5", "requests.storage", storage), corev1.ResourceQuotaScopeVolumeAttributesClass, corev1.ScopeSelectorOpIn, "gold")
	}
	withDeadline := func(seconds int64) *corev1.Pod {
		p := pod()
		p.Spec.ActiveDeadlineSeconds = &seconds
		return p
	}
	claim := func(target, allocated string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		c.Spec.Resources.Requests = list("storage", "1Gi")
		if target != "" {
			c.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: target}
		}
		if allocated != "" {
			c.Status.AllocatedResources = list("storage", allocated)
		}
		return c
	}
	for name, c := range map[string]struct {
		quota    *corev1.ResourceQuota
		sub      string
		obj, old runtime.Object
		v132     bool
		used     map[string]string
		err      string
	}{
		"deadline":                 {quota: ends("1"), obj: withDeadline(9), old: pod(), used: map[string]string{"pods": "1"}},
		"deadline too many":        {quota: ends("0"), obj: withDeadline(9), old: pod(), err: forbidden("pods", "p", "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0")},
		"shorter deadline":         {quota: ends("1"), obj: withDeadline(5), old: withDeadline(9), used: map[string]string{"pods": "0"}},
		"deadline without scope":   {quota: limit("q", "pods", "1"), obj: withDeadline(9), old: pod(), used: map[string]string{"pods": "0"}},
		"deadline in 1.32":         {quota: ends("0"), obj: withDeadline(9), old: pod(), v132: true, used: map[string]string{"pods": "0"}},
		"status of a pod":          {quota: ends("1"), sub: "status", obj: withDeadline(9), old: pod(), used: map[string]string{"pods": "0"}},
		"class":                    {quota: gold("5Gi"), sub: "status", obj: claim("gold", ""), old: claim("", ""), used: map[string]string{"persistentvolumeclaims": "1", "requests.storage": "1Gi"}},
		"class beyond the quota":   {quota: gold("1"), sub: "status", obj: claim("gold", ""), old: claim("", ""), used: map[string]string{"persistentvolumeclaims": "1", "requests.storage": "1Gi"}},
		"another class":            {quota: gold("5Gi"), sub: "status", obj: claim("iron", ""), old: claim("", ""), used: map[string]string{"persistentvolumeclaims": "0"}},
		"same class":               {quota: gold("5Gi"), sub: "status", obj: claim("gold", ""), old: claim("gold", ""), used: map[string]string{"persistentvolumeclaims": "0"}},
		"storage that it is given": {quota: gold("5Gi"), sub: "status", obj: claim("gold", "3Gi"), old: claim("gold", ""), used: map[string]string{"persistentvolumeclaims": "0", "requests.storage": "2Gi"}},
		"class in 1.32":            {quota: gold("5Gi"), sub: "status", obj: claim("gold", ""), old: claim("", ""), v132: true, used: map[string]string{"persistentvolumeclaims": "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := storeOf(c.quota)
			plural := "pods"
			if _, ok := c.obj.(*corev1.PersistentVolumeClaim); ok {
				plural = "persistentvolumeclaims"
			}
			a := write(admission.Update, "", plural, c.obj, c.old)
			a.Subresource = c.sub
			err := quota.New(s, nil, quota.Rules{Moves: !c.v132}, time.Now).Validate(t.Context(), a)
			if got := fmt.Sprint(err); c.err == "" && err != nil || c.err != "" && got != c.err {
				t.Errorf("error %q, want %q", got, c.err)
			}
			for of, want := range c.used {
				if got := s.used("q", of); got != want {
					t.Errorf("%s: used %s, want %s", of, got, want)
				}
			}
		})
	}
}

// TestChargesNeedNoLead: a controller that has lost its lead charges for others that wait, too.
func TestChargesNeedNoLead(t *testing.T) {
	s := storeOf(limit("q", "pods", "1"))
	p := quota.New(s, nil, quota.Rules{}, time.Now)
	ctx := sqlstore.WithLead(t.Context(), "controller")
	if err := p.Validate(ctx, write(admission.Create, "", "pods", pod(), nil)); err != nil || s.used("q", "pods") != "1" {
		t.Errorf("%v, used %s", err, s.used("q", "pods"))
	}
}

func TestDryRunsAreNotRecorded(t *testing.T) {
	s := storeOf(limit("q", "pods", "1"))
	p := quota.New(s, nil, quota.Rules{}, time.Now)
	a := write(admission.Create, "", "pods", pod(), nil)
	a.DryRun = true
	if err := p.Validate(t.Context(), a); err != nil || s.writes != 0 {
		t.Errorf("%v, %d writes", err, s.writes)
	}
}

// TestCreatesAreChargedOnce: a create that is tried again, as its generated name or an address was taken, is charged once.
func TestCreatesAreChargedOnce(t *testing.T) {
	s := storeOf(limit("q", "services", "2"))
	p := quota.New(s, nil, quota.Rules{}, time.Now)
	for range 2 {
		a := write(admission.Create, "", "services", &corev1.Service{}, nil)
		for range 3 {
			if err := p.Validate(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := s.used("q", "services"); got != "2" {
		t.Errorf("%s services are counted", got)
	}
	if err := p.Validate(t.Context(), write(admission.Create, "", "services", &corev1.Service{}, nil)); !apierrors.IsForbidden(err) {
		t.Errorf("a third one: %v", err)
	}
}

func TestPodsThatEndedUseNothing(t *testing.T) {
	now := time.Now()
	p := quota.New(storeOf(limit("q", "pods", "0")), nil, quota.Rules{}, func() time.Time { return now })
	gone := pod()
	grace := int64(30)
	gone.DeletionTimestamp, gone.DeletionGracePeriodSeconds = &metav1.Time{Time: now.Add(-31 * time.Second)}, &grace
	if err := p.Validate(t.Context(), write(admission.Create, "", "pods", gone, nil)); err != nil {
		t.Error(err)
	}
	gone.DeletionTimestamp.Time = now
	if err := p.Validate(t.Context(), write(admission.Create, "", "pods", gone, nil)); err == nil {
		t.Error("a pod in its grace period is free")
	}
}

// TestManyWriters has two servers share a quota that is enough for some of the writes.
func TestManyWriters(t *testing.T) {
	s := storeOf(limit("a", "pods", "50"), limit("b", "pods", "70", "requests.cpu", "100"))
	servers := []*quota.Plugin{quota.New(s, nil, quota.Rules{}, time.Now), quota.New(s, nil, quota.Rules{}, time.Now)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	passed := 0
	for i := range 100 {
		wg.Go(func() {
			err := servers[i%2].Validate(context.Background(), write(admission.Create, "", "pods", pod(container("a", list("cpu", "1"), nil)), nil))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				passed++
			} else if !apierrors.IsForbidden(err) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := s.used("a", "pods"); passed > 50 || got != "50" {
		t.Errorf("%d writes passed, %s are recorded, 50 are allowed", passed, got)
	}
	if s.writes >= 200 {
		t.Errorf("%d changes of quotas: writers of one server do not go together", s.writes)
	}
}

func TestConflictsAreTriedAgain(t *testing.T) {
	s := storeOf(limit("q", "pods", "1"))
	s.lose = 3
	p := quota.New(s, nil, quota.Rules{}, time.Now)
	if err := p.Validate(t.Context(), write(admission.Create, "", "pods", pod(), nil)); err != nil || s.used("q", "pods") != "1" {
		t.Errorf("%v, used %s", err, s.used("q", "pods"))
	}
	s.lose = 12 // however often
	s.quotas["q"].Status.Hard = list("pods", "2")
	if err := p.Validate(t.Context(), write(admission.Create, "", "pods", pod(), nil)); err != nil || s.used("q", "pods") != "2" {
		t.Errorf("after many conflicts: %v, used %s", err, s.used("q", "pods"))
	}
}

// TestWaitingEnds: a request that gives up is not counted, and delays no other.
func TestWaitingEnds(t *testing.T) {
	s := storeOf(limit("q", "pods", "5"))
	p := quota.New(s, nil, quota.Rules{}, time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // a free turn and an end are equally good reasons to go on
		if err := p.Validate(ctx, write(admission.Create, "", "pods", pod(), nil)); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		s.quotas["q"].Status.Used = list("pods", "0")
	}
	if err := p.Validate(t.Context(), write(admission.Create, "", "pods", pod(), nil)); err != nil || s.used("q", "pods") != "1" {
		t.Errorf("%v, used %s", err, s.used("q", "pods"))
	}
}

func TestLimitedResources(t *testing.T) {
	limited, err := quota.ParseLimited([]byte(`
apiVersion: apiserver.config.k8s.io/v1
kind: ResourceQuotaConfiguration
limitedResources:
- resource: persistentvolumeclaims
  matchContains: [.storageclass.storage.k8s.io/requests.storage]
- resource: pods
  matchScopes:
  - scopeName: PriorityClass
    operator: In
    values: [cluster-services]
`))
	if err != nil {
		t.Fatal(err)
	}
	gold := "gold"
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &gold, Resources: corev1.VolumeResourceRequirements{Requests: list("storage", "1Gi")},
	}}
	p := quota.New(storeOf(), limited, quota.Rules{}, time.Now)
	want := forbidden("persistentvolumeclaims", "c", "insufficient quota to consume: gold.storageclass.storage.k8s.io/requests.storage")
	if err := p.Validate(t.Context(), write(admission.Create, "", "persistentvolumeclaims", claim, nil)); fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	important := pod()
	important.Spec.PriorityClassName = "cluster-services"
	want = "insufficient quota to match these scopes: [{PriorityClass In [cluster-services]}]"
	if err := p.Validate(t.Context(), write(admission.Create, "", "pods", important, nil)); fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	covering := limit("q", "pods", "5")
	covering.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: limited[1].MatchScopes}
	p = quota.New(storeOf(covering, limit("r", "gold.storageclass.storage.k8s.io/requests.storage", "2Gi")), limited, quota.Rules{}, time.Now)
	for plural, obj := range map[string]runtime.Object{"pods": important, "persistentvolumeclaims": claim} {
		if err := p.Validate(t.Context(), write(admission.Create, "", plural, obj, nil)); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"kind: X", "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\nother: 1", "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\nlimitedResources: [{}]"} {
		if _, err := quota.ParseLimited([]byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestPodResources: with the gate, a pod uses its pod-level requests, and those of its containers
// for resources without pod-level requests. Its containers need none.
func TestPodResources(t *testing.T) {
	whole := pod(container("c", list("cpu", "100m", "memory", "1Gi"), list("cpu", "100m")))
	whole.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "1"), Limits: list("cpu", "2")}
	alone := pod(corev1.Container{Name: "c"})
	alone.Spec.Resources = whole.Spec.Resources
	for gate, want := range map[bool]map[string]string{
		false: {"requests.cpu": "100m", "limits.cpu": "100m", "requests.memory": "1Gi", "best": "1"},
		true:  {"requests.cpu": "1", "limits.cpu": "2", "requests.memory": "1Gi", "best": "0"},
	} {
		best := limit("best", "pods", "9")
		best.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
		s := storeOf(limit("q", "requests.cpu", "9", "limits.cpu", "9", "requests.memory", "9Gi"))
		if err := quota.New(s, nil, quota.Rules{Whole: gate}, time.Now).Validate(t.Context(), write(admission.Create, "", "pods", whole, nil)); err != nil {
			t.Fatal(err)
		}
		scoped := storeOf(best)
		if err := quota.New(scoped, nil, quota.Rules{Whole: gate}, time.Now).Validate(t.Context(), write(admission.Create, "", "pods", alone, nil)); err != nil {
			t.Fatal(err)
		}
		required := quota.New(storeOf(limit("q", "requests.cpu", "9")), nil, quota.Rules{Whole: gate}, time.Now).Validate(t.Context(), write(admission.Create, "", "pods", alone, nil))
		if gate != (required == nil) {
			t.Errorf("with the gate %t, without requests of its container: %v", gate, required)
		}
		for name, amount := range want {
			got := scoped.used("best", "pods")
			if name != "best" {
				got = s.used("q", name)
			}
			if got != amount {
				t.Errorf("with the gate %t: %s is %s, want %s", gate, name, got, amount)
			}
		}
	}
}
