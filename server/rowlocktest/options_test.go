package rowlocktest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/embed"
	"github.com/rowlock/rowlock/server/rowlocktest"
)

// TestOptions: controllers run that are named, APIs are on and off, rules of the test hold, and
// definitions that are Go values are served.
func TestOptions(t *testing.T) {
	def, err := embed.Kind{Group: "rowing.example", Version: "v1", Object: Boat{}}.Definition()
	if err != nil {
		t.Fatal(err)
	}
	s := rowlocktest.Start(t, rowlocktest.Controllers("namespace"), rowlocktest.Definitions(def), rowlocktest.RuntimeConfig("batch/v1=false"),
		rowlocktest.FeatureGates("AllAlpha=false"), rowlocktest.EnableAdmission("AlwaysPullImages"), rowlocktest.DisableAdmission("ServiceAccount"),
		rowlocktest.Admission(embed.Admission{Name: "no-b", Validate: func(_ context.Context, w *embed.Write) error {
			if w.Name == "b" {
				return errors.New("no b")
			}
			return nil
		}}))
	c := clients(t, s.Config())
	if _, err := c.BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("Jobs: %v", err)
	}
	if _, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("b"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the rule: %v", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", ImagePullPolicy: corev1.PullNever}}}}
	made, err := c.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil || made.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways {
		t.Errorf("the plugin: %v %v", made, err)
	}
	busy := s.Inject(rowlocktest.Fault{Verb: "create", Resource: "namespaces", Times: 1, Effect: rowlocktest.TooManyRequests(0)})
	s.Namespace("goes") // the test's own writes meet no faults
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	s.Await(namespaces, "", "goes", 0, rowlocktest.Exists)
	if _, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{}); err != nil || busy.Hits() != 1 {
		t.Errorf("a client of client-go tries again after 429: %v, %d times", err, busy.Hits())
	}
	if err := c.CoreV1().Namespaces().Delete(t.Context(), "goes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Clock().Advance(time.Minute)
	s.Await(namespaces, "", "goes", 0, rowlocktest.Absent)
}

// TestMaxObjectBytes: a server stores an object of 2 MiB if the test allows it, and not by default.
func TestMaxObjectBytes(t *testing.T) {
	large := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i", Args: []string{strings.Repeat("x", 2<<20)}}},
	}}}
	usual := clients(t, rowlocktest.Start(t).Config())
	if _, err := usual.CoreV1().PodTemplates("default").Create(t.Context(), large, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "1572864") {
		t.Errorf("by default: %v", err)
	}
	larger := clients(t, rowlocktest.Start(t, rowlocktest.MaxObjectBytes(4<<20)).Config())
	if _, err := larger.CoreV1().PodTemplates("default").Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
		t.Errorf("with the option: %v", err)
	}
}

// TestRelease: a server is the release that a test names, and servers of several run in one process.
func TestRelease(t *testing.T) {
	for release, want := range map[string]struct{ minor, emulated string }{"1.32": {"32", ""}, "1.35": {"36", "35"}, "1.36": {"36", "36"}} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			s := rowlocktest.Start(t, rowlocktest.Release(release))
			client := clients(t, s.Config())
			v, err := client.Discovery().ServerVersion()
			if err != nil || v.Major != "1" || v.Minor != want.minor || v.EmulationMinor != want.emulated {
				t.Errorf("%v, %v", v, err)
			}
			_, err = client.Discovery().ServerResourcesForGroupVersion("resource.k8s.io/v1")
			if served := err == nil; served != (release != "1.32") {
				t.Errorf("resource.k8s.io/v1: %v", err)
			}
		})
	}
}

// TestFirstOfItsGates: additional objects of the first server of a process do not exist in
// later ones.
func TestFirstOfItsGates(t *testing.T) {
	alike := rowlocktest.FeatureGates("AllAlpha=false", "AllBeta=true") // no other test's
	first := rowlocktest.Start(t, alike, rowlocktest.Kinds(embed.Kind{Group: "rowing.example", Version: "v1", Object: Boat{}}))
	accounts := rowlocktest.Start(t, alike, rowlocktest.Controllers("serviceaccount"))
	accounts.Await(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "default", "default", 0, rowlocktest.Exists)
	later := rowlocktest.Start(t, alike)
	boats := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if have := len(first.History(boats, "", "boats.rowing.example")); have == 0 {
		t.Error("the first has no Boats")
	}
	if have := len(later.History(boats, "", "boats.rowing.example")); have != 0 {
		t.Error("the last has the Boats of the first")
	}
	list, err := clients(t, later.Config()).CoreV1().ServiceAccounts("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("accounts without their controller: %v %v", list, err)
	}
}
