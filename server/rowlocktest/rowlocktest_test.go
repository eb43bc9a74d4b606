package rowlocktest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rowlock/rowlock/server/rowlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func clients(t testing.TB, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(name string, data ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{}}
	for i := 0; i+1 < len(data); i += 2 {
		c.Data[data[i]] = data[i+1]
	}
	return c
}

// names returns the names of the ConfigMaps in namespace default.
func names(t testing.TB, s *rowlocktest.Server) string {
	t.Helper()
	list, err := clients(t, s.Config()).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list.Items {
		names = append(names, c.Name+"="+c.Data["v"])
	}
	return strings.Join(names, " ")
}

func create(t testing.TB, s *rowlocktest.Server, c *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	made, err := clients(t, s.Config()).CoreV1().ConfigMaps("default").Create(t.Context(), c, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestApart: servers of a process, and clones of one, know nothing of each other.
func TestApart(t *testing.T) {
	a, b := rowlocktest.Start(t), rowlocktest.Start(t)
	create(t, a, configMap("a", "v", "1"))
	c := a.Clone(t)
	create(t, c, configMap("c"))
	create(t, a, configMap("a2"))
	d := c.Clone(t)
	for want, s := range map[string]*rowlocktest.Server{"a=1 a2=": a, "": b, "a=1 c=": c, "a=1 c= ": d} {
		if got := names(t, s); got != strings.TrimSpace(want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestReset: new objects are deleted, deleted and changed ones come back as they were, and an
// open watch gets all these events.
func TestReset(t *testing.T) {
	s := rowlocktest.Start(t)
	kept := create(t, s, configMap("kept", "v", "1"))
	gone := create(t, s, configMap("gone", "v", "1"))
	before := s.Snapshot()
	maps := clients(t, s.Config()).CoreV1().ConfigMaps("default")
	watch, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: gone.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	create(t, s, configMap("new"))
	if _, err := maps.Update(t.Context(), configMap("kept", "v", "2"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Inject(rowlocktest.Fault{Verb: "list", Effect: rowlocktest.InternalError()})
	s.Reset(before)
	if got := names(t, s); got != "gone=1 kept=1" {
		t.Errorf("after the reset: %s", got)
	}
	again, err := maps.Get(t.Context(), "gone", metav1.GetOptions{})
	if err != nil || again.UID != gone.UID || again.ResourceVersion == gone.ResourceVersion || kept.UID == "" {
		t.Errorf("%v %v", again, err)
	}
	seen := map[string]int{}
	for want := []string{"ADDED new", "MODIFIED kept", "DELETED gone", "DELETED new", "MODIFIED kept", "ADDED gone"}; len(want) > 0; want = want[1:] {
		event := <-watch.ResultChan()
		seen[fmt.Sprint(event.Type, " ", event.Object.(*corev1.ConfigMap).Name)]++
	}
	if len(seen) != 5 || seen["MODIFIED kept"] != 2 {
		t.Errorf("the watch saw %v", seen)
	}
}

// TestUsers: roles decide on users, and on those of bearer tokens and certificates alike.
func TestUsers(t *testing.T) {
	s := rowlocktest.Start(t)
	s.Namespace("ours")
	s.Allow("alice", "ours", rowlocktest.Rule("", []string{"configmaps"}, "get", "list"))
	s.Allow("group:team", "", rowlocktest.Rule("", []string{"secrets"}, "*"))
	at := s.Listen()
	for how, cfg := range map[string]*rest.Config{
		"in process": s.As("alice", "team"), "certificate": at.As("alice", "team"), "token": at.WithToken("alice", "team"),
	} {
		c := clients(t, cfg)
		if _, err := c.CoreV1().ConfigMaps("ours").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		if _, err := c.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		if _, err := c.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", how, err)
		}
	}
	file, err := clientcmd.BuildConfigFromFlags("", at.Kubeconfig(at.Config()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients(t, file).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	file.CertData, file.KeyData = nil, nil
	if _, err := clients(t, file).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("without credentials: %v", err)
	}
	account := clients(t, s.AsServiceAccount("ours", "robot"))
	if _, err := account.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:ours:robot") {
		t.Error(err)
	}
}

// TestManyAtOnce: a hundred servers work at the same time.
func TestManyAtOnce(t *testing.T) {
	base := rowlocktest.Start(t)
	create(t, base, configMap("base"))
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			s := base.Clone(t)
			create(t, s, configMap("own"))
			if got := names(t, s); got != "base= own=" {
				t.Error(got)
			}
		})
	}
	group.Wait()
}
