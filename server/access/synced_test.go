package access_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/node"
	"github.com/rowlock/rowlock/authx/rbac"
	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

// log writes to a cache as the store's follower does.
type log struct {
	t         testing.TB
	catalogue *kinds.Catalogue
	cache     *cache.Cache
	last      int64
	live      map[sqlstore.Key]sqlstore.Row
}

func newLog(t testing.TB) *log {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	return &log{t: t, catalogue: catalogue, cache: cache.New(catalogue), live: map[sqlstore.Key]sqlstore.Row{}}
}

// set returns a change, and its removal where obj is nil; apply makes it known.
func (l *log) set(storage, namespace, name string, obj any) sqlstore.Change {
	l.t.Helper()
	l.last++
	key := sqlstore.Key{Resource: storage, Namespace: namespace, Name: name}
	old, was := l.live[key]
	row := sqlstore.Row{Key: key, Revision: l.last, Value: old.Value}
	switch v := obj.(type) {
	case nil:
		row.Deleted = true
	case string:
		row.Value = []byte(v)
	default:
		var err error
		// Stored objects have a kind; some tests here store objects without metadata.
		o := v.(kinds.Object)
		o.GetObjectKind().SetGroupVersionKind(l.catalogue.ByStorage(storage).Storage.GVK)
		o.SetNamespace(namespace)
		o.SetName(name)
		if row.Value, err = json.Marshal(o); err != nil {
			l.t.Fatal(err)
		}
	}
	ch := sqlstore.Change{Row: row}
	if was {
		ch.PrevRevision, ch.PrevValue = old.Revision, old.Value
	}
	if l.live[key] = row; row.Deleted {
		delete(l.live, key)
	}
	return ch
}

func (l *log) apply(batch ...sqlstore.Change) { l.cache.Apply(batch) }

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

const (
	clusterRoles        = "clusterroles.rbac.authorization.k8s.io"
	clusterRoleBindings = "clusterrolebindings.rbac.authorization.k8s.io"
	roles               = "roles.rbac.authorization.k8s.io"
	roleBindings        = "rolebindings.rbac.authorization.k8s.io"
)

func getting(resources ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: resources}}
}

func binding(name, role string, users ...string) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
	for _, u := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "User", Name: u})
	}
	return b
}

func get(z authx.Authorizer, user, resource string) bool {
	d, _, _ := z.Authorize(context.Background(), &authx.Attributes{
		User: &authx.Identity{Name: user}, Verb: "get", Resource: resource, Namespace: "a", ResourceRequest: true,
	})
	return d == authx.Allow
}

func TestRulesFollowTheCache(t *testing.T) {
	l := newLog(t)
	rules := rbac.New()
	follower := access.FollowRules(rules, l.cache)
	z := access.Synced{Follower: follower, Authorizer: rules}
	want := func(step string, user, resource string, want bool) {
		t.Helper()
		if got := get(z, user, resource); got != want {
			t.Errorf("%s: %s may get %s: %v", step, user, resource, got)
		}
	}
	l.apply(l.set(clusterRoles, "", "before", &rbacv1.ClusterRole{ObjectMeta: meta("", "before"), Rules: getting("pods")}))
	l.apply(l.set(clusterRoleBindings, "", "before", binding("before", "before", "jan")))
	want("what was there", "jan", "pods", true)
	l.apply(l.set(clusterRoles, "", "before", &rbacv1.ClusterRole{ObjectMeta: meta("", "before"), Rules: getting("nodes")}))
	want("a role changes", "jan", "pods", false)
	want("a role changes", "jan", "nodes", true)
	l.apply(l.set(clusterRoleBindings, "", "before", binding("before", "before", "eva")))
	want("subjects change", "jan", "nodes", false)
	want("subjects change", "eva", "nodes", true)
	l.apply(l.set(roles, "a", "r", &rbacv1.Role{ObjectMeta: meta("a", "r"), Rules: getting("secrets")}))
	l.apply(l.set(roleBindings, "a", "r", &rbacv1.RoleBinding{ObjectMeta: meta("a", "r"), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "jan"}}}))
	want("in a namespace", "jan", "secrets", true)
	l.apply(l.set(roles, "a", "r", `{"rules": "none of it"}`))
	want("a role that cannot be read", "jan", "secrets", false)
	l.apply(l.set(roles, "a", "r", &rbacv1.Role{ObjectMeta: meta("a", "r"), Rules: getting("secrets")}))
	want("and again", "jan", "secrets", true)
	l.apply(l.set(roleBindings, "a", "r", `[1]`))
	want("a binding that cannot be read", "jan", "secrets", false)
	l.apply(l.set(clusterRoles, "", "before", nil))
	want("a role goes", "eva", "nodes", false)
	rulesFor := access.SyncedRules{Follower: follower, RuleResolver: rules}
	l.apply(l.set(clusterRoles, "", "before", &rbacv1.ClusterRole{ObjectMeta: meta("", "before"), Rules: getting("nodes")}))
	if list, _, _, err := rulesFor.RulesFor(t.Context(), &authx.Identity{Name: "eva"}, "a"); len(list) != 1 || err != nil {
		t.Errorf("rules of eva: %v %v", list, err)
	}
}

// A role is narrowed before another user is bound to it, over and over, in batches as other
// servers' writes come. No user may ever use the wide role by the new binding.
func TestDecisionsSeeOneMoment(t *testing.T) {
	l := newLog(t)
	rules := rbac.New()
	follower := access.FollowRules(rules, l.cache)
	z := access.Synced{Follower: follower, Authorizer: rules}
	var done atomic.Bool
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for !done.Load() {
				if get(z, "new", "secrets") {
					t.Error("the new user got what the role gave before")
					return
				}
			}
		})
	}
	wide := &rbacv1.ClusterRole{ObjectMeta: meta("", "r"), Rules: getting("pods", "secrets")}
	narrow := &rbacv1.ClusterRole{ObjectMeta: meta("", "r"), Rules: getting("pods")}
	for range 500 {
		l.apply(l.set(clusterRoles, "", "r", wide))
		l.apply(l.set(clusterRoles, "", "r", narrow), l.set(clusterRoleBindings, "", "b", binding("b", "r", "new")))
		if !get(z, "new", "pods") {
			t.Error("an acknowledged binding does not count")
			break
		}
		l.apply(l.set(clusterRoleBindings, "", "b", nil))
	}
	done.Store(true)
	group.Wait()
}

func TestNodesFollowTheCache(t *testing.T) {
	l := newLog(t)
	z := access.NewNodes(node.Authorizer{Allows: rbac.RuleAllows, Selectors: true}, l.cache)
	may := func(agent, group, resource, namespace, name string) bool {
		d, _, err := z.Authorize(t.Context(), &authx.Attributes{
			User: &authx.Identity{Name: "system:node:" + agent, Groups: []string{"system:nodes"}},
			Verb: "get", APIGroup: group, Resource: resource, Namespace: namespace, Name: name, ResourceRequest: true,
		})
		if err != nil {
			t.Error(err)
		}
		return d == authx.Allow
	}
	want := func(step string, want bool, list ...[4]string) {
		t.Helper()
		for _, o := range list {
			if got := may("n1", o[0], o[1], o[2], o[3]); got != want {
				t.Errorf("%s: n1 reads %v: %v", step, o, got)
			}
			if may("n2", o[0], o[1], o[2], o[3]) {
				t.Errorf("%s: n2 reads %v", step, o)
			}
		}
	}
	ref := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }
	claimName := "gpu"
	pod := &corev1.Pod{ObjectMeta: meta("a", "p"), Spec: corev1.PodSpec{
		ServiceAccountName: "app",
		ImagePullSecrets:   []corev1.LocalObjectReference{{Name: "pull"}},
		InitContainers:     []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: *ref("init")}}}}},
		Containers: []corev1.Container{{Env: []corev1.EnvVar{
			{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: *ref("env")}}},
			{Name: "B", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: *ref("env")}}},
		}}},
		ResourceClaims: []corev1.PodResourceClaim{{Name: "x", ResourceClaimName: &claimName}, {Name: "t", ResourceClaimTemplateName: &claimName}},
		Volumes: []corev1.Volume{
			{Name: "v1", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: *ref("projected")}}, {ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: *ref("projected")}},
			}}}},
			{Name: "v2", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: ref("csi")}}},
			{Name: "v3", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
			{Name: "v4", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		},
	}}
	direct := [][4]string{
		{"", "pods", "a", "p"}, {"", "secrets", "a", "pull"}, {"", "secrets", "a", "init"}, {"", "secrets", "a", "env"}, {"", "configmaps", "a", "env"},
		{"", "secrets", "a", "projected"}, {"", "configmaps", "a", "projected"}, {"", "secrets", "a", "csi"},
		{"", "persistentvolumeclaims", "a", "data"}, {"", "persistentvolumeclaims", "a", "p-v4"}, {"resource.k8s.io", "resourceclaims", "a", "gpu"},
	}
	volume := [][4]string{{"", "persistentvolumes", "", "pv"}, {"", "secrets", "store", "stage"}, {"", "secrets", "a", "expand"}}
	l.apply(l.set("pods", "a", "p", pod))
	want("not scheduled", false, direct...)
	pod.Spec.NodeName = "n1"
	l.apply(l.set("pods", "a", "p", pod))
	want("scheduled", true, direct...)
	want("scheduled", false, [4]string{"", "secrets", "b", "env"}, [4]string{"", "secrets", "a", "other"}, [4]string{"resource.k8s.io", "resourceclaims", "a", "made"})
	made := "made"
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "t", ResourceClaimName: &made}}
	l.apply(l.set("pods", "a", "p", pod))
	want("claim made", true, [4]string{"resource.k8s.io", "resourceclaims", "a", "made"})

	pv := &corev1.PersistentVolume{ObjectMeta: meta("", "pv"), Spec: corev1.PersistentVolumeSpec{
		ClaimRef: &corev1.ObjectReference{Namespace: "a", Name: "data"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			NodeStageSecretRef: &corev1.SecretReference{Namespace: "store", Name: "stage"}, NodeExpandSecretRef: &corev1.SecretReference{Name: "expand"},
			ControllerPublishSecretRef: &corev1.SecretReference{Namespace: "store", Name: "controller"},
		}},
	}}
	want("no volume", false, volume...)
	l.apply(l.set("persistentvolumes", "", "pv", pv))
	want("volume", true, volume...)
	want("volume", false, [4]string{"", "secrets", "store", "controller"})
	pv.Spec.ClaimRef = nil
	l.apply(l.set("persistentvolumes", "", "pv", pv))
	want("volume let go", false, volume...)
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "a", Name: "data"}
	l.apply(l.set("persistentvolumes", "", "pv", pv))
	l.apply(l.set("pods", "a", "p", nil))
	want("pod gone", false, append(direct, volume...)...)

	attachment := [4]string{"storage.k8s.io", "volumeattachments", "", "va"}
	l.apply(l.set("volumeattachments.storage.k8s.io", "", "va", &storagev1.VolumeAttachment{ObjectMeta: meta("", "va"), Spec: storagev1.VolumeAttachmentSpec{NodeName: "n1"}}))
	want("attached", true, attachment)
	l.apply(l.set("volumeattachments.storage.k8s.io", "", "va", nil))
	want("detached", false, attachment)
	devices := [4]string{"resource.k8s.io", "resourceslices", "", "s"}
	sliceOf := func(name string) *resourcev1beta1.ResourceSlice {
		return &resourcev1beta1.ResourceSlice{ObjectMeta: meta("", "s"), Spec: resourcev1beta1.ResourceSliceSpec{NodeName: name}}
	}
	l.apply(l.set("resourceslices.resource.k8s.io", "", "s", sliceOf("")))
	want("devices of no node", false, devices)
	l.apply(l.set("resourceslices.resource.k8s.io", "", "s", sliceOf("n1")))
	want("its devices", true, devices)
	l.apply(l.set("resourceslices.resource.k8s.io", "", "s", nil))
	want("devices that are gone", false, devices)

	pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	l.apply(l.set("pods", "a", "p", pod))
	want("a mirror pod gives nothing", false, direct[1:]...)
	want("a mirror pod is the node's", true, direct[0])
	l.apply(l.set("pods", "a", "p", `{"spec": 7}`))
	want("a pod that cannot be read", false, direct...)

	if d, reason, err := z.Authorize(t.Context(), &authx.Attributes{User: &authx.Identity{Name: "jan"}, Verb: "get", Resource: "pods", ResourceRequest: true}); d != authx.NoOpinion || reason != "" || err != nil {
		t.Errorf("jan: %v %q %v", d, reason, err)
	}
}

// TestReferencesOfPodAreBounded: a pod that names more objects than any real one makes only some of them readable.
func TestReferencesOfPodAreBounded(t *testing.T) {
	l := newLog(t)
	z := access.NewNodes(node.Authorizer{Allows: rbac.RuleAllows, Selectors: true}, l.cache)
	const many, most = 50_000, 4096
	pod := &corev1.Pod{ObjectMeta: meta("a", "p"), Spec: corev1.PodSpec{NodeName: "n1"}}
	for i := range many {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: strconv.Itoa(i)})
	}
	l.apply(l.set("pods", "a", "p", pod))
	readable := 0
	for i := range many {
		d, _, _ := z.Authorize(t.Context(), &authx.Attributes{
			User: &authx.Identity{Name: "system:node:n1", Groups: []string{"system:nodes"}},
			Verb: "get", Resource: "secrets", Namespace: "a", Name: strconv.Itoa(i), ResourceRequest: true,
		})
		if d == authx.Allow {
			readable++
		}
	}
	if readable != most {
		t.Errorf("%d of %d Secrets are readable, want %d", readable, many, most)
	}
}

func TestDenialsAreLogged(t *testing.T) {
	l := newLog(t)
	rules := rbac.New()
	follower := access.FollowRules(rules, l.cache)
	var out strings.Builder
	for level, want := range map[slog.Level]string{
		slog.LevelInfo:  "",
		slog.LevelDebug: `RBAC: no rules authorize user \"jan\" with groups [\"devs\"] to get resource \"pods/log\" named \"p\" in namespace \"a\"`,
	} {
		out.Reset()
		z := access.Synced{Follower: follower, Authorizer: rules, Denials: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))}
		a := &authx.Attributes{User: &authx.Identity{Name: "jan", Groups: []string{"devs"}}, Verb: "get", Resource: "pods", Subresource: "log", Namespace: "a", Name: "p", ResourceRequest: true}
		if d, _, _ := z.Authorize(t.Context(), a); d != authx.NoOpinion {
			t.Error(d)
		}
		if got := out.String(); (got != "") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", level, got, want)
		}
	}
}

// BenchmarkFollowingPods measures a node's request, by the number of pods that changed since the last.
func BenchmarkFollowingPods(b *testing.B) {
	l := newLog(b)
	z := access.NewNodes(node.Authorizer{Allows: rbac.RuleAllows, Selectors: true}, l.cache)
	pod := &corev1.Pod{ObjectMeta: meta("a", "p"), Spec: corev1.PodSpec{NodeName: "n1", ServiceAccountName: "app", Containers: []corev1.Container{
		{Name: "c", Image: "example.org/image:1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "C", Value: "d"}}, Ports: []corev1.ContainerPort{{ContainerPort: 80}}},
	}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: "True"}, {Type: corev1.PodScheduled, Status: "True"}}
	a := &authx.Attributes{User: &authx.Identity{Name: "system:node:n1", Groups: []string{"system:nodes"}}, Verb: "get", Resource: "pods", Namespace: "a", Name: "p", ResourceRequest: true}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		l.apply(l.set("pods", "a", "p", pod))
		b.StartTimer()
		if d, _, _ := z.Authorize(b.Context(), a); d != authx.Allow {
			b.Fatal(d)
		}
	}
}

// BenchmarkSynced is a decision when nothing has changed.
func BenchmarkSynced(b *testing.B) {
	l := newLog(b)
	rules := rbac.New()
	follower := access.FollowRules(rules, l.cache)
	l.apply(l.set(clusterRoles, "", "r", &rbacv1.ClusterRole{ObjectMeta: meta("", "r"), Rules: getting("pods")}))
	l.apply(l.set(clusterRoleBindings, "", "b", binding("b", "r", "jan")))
	z := access.Synced{Follower: follower, Authorizer: rules}
	b.ReportAllocs()
	for b.Loop() {
		if !get(z, "jan", "pods") {
			b.Fatal("refused")
		}
	}
}
