package rowlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/rowlock/rowlock/server/embed"
	"github.com/rowlock/rowlock/server/rowlocktest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// TestClock: timers of the server's clock fire when that is moved, and not before.
func TestClock(t *testing.T) {
	s := rowlocktest.Start(t, rowlocktest.Retention(10*time.Minute))
	c := clients(t, s.Config())
	if _, err := c.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	asked, err := c.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token := s.Listen().WithToken("nobody")
	token.BearerToken = asked.Status.Token
	good := func() bool {
		_, err := clients(t, token).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			t.Error(err)
		}
		return apierrors.IsForbidden(err)
	}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"}}
	if _, err := c.CoreV1().Events("default").Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	old := create(t, s, configMap("old"))
	if !good() {
		t.Error("the token is no good")
	}
	s.Clock().Advance(59 * time.Minute)
	if _, err := c.CoreV1().Events("default").Get(t.Context(), "e", metav1.GetOptions{}); err != nil || !good() {
		t.Errorf("before its time: %v", err)
	}
	s.Clock().Advance(2 * time.Minute)
	if good() {
		t.Error("the token is good for more than an hour")
	}
	rowlocktest.Eventually(t, func() error {
		_, err := c.CoreV1().Events("default").Get(t.Context(), "e", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the event is there: %v", err)
		}
		return nil
	})
	rowlocktest.Eventually(t, func() error {
		s.Clock().Advance(time.Minute)
		create(t, s, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a"}})
		w, err := c.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: old.ResourceVersion})
		if err != nil {
			return nil
		}
		defer w.Stop()
		if event := <-w.ResultChan(); apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
			return nil
		}
		return errors.New("history stays")
	})
	if made := create(t, s, configMap("new")); made.CreationTimestamp.Sub(old.CreationTimestamp.Time) < time.Hour {
		t.Errorf("made at %s after %s", made.CreationTimestamp, old.CreationTimestamp)
	}
}

// TestClockOfControllers: controllers that wait for a moment of the server's clock are woken by
// a move.
func TestClockOfControllers(t *testing.T) {
	s := rowlocktest.Start(t, rowlocktest.Controllers("ttl-after-finished", "garbagecollector"))
	c := clients(t, s.Config())
	hour := int32(3600)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j"}, Spec: batchv1.JobSpec{TTLSecondsAfterFinished: &hour, Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}}}
	jobs := c.BatchV1().Jobs("default")
	job, err := jobs.Create(t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := metav1.NewTime(s.Clock().Now())
	job.Status.StartTime, job.Status.CompletionTime = &at, &at
	for _, condition := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	if _, err := jobs.UpdateStatus(t.Context(), job, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	gone := func() error {
		if _, err := jobs.Get(t.Context(), "j", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Job is there: %v", err)
		}
		return nil
	}
	s.Clock().Advance(59 * time.Minute)
	if gone() == nil {
		t.Error("it went before its time")
	}
	s.Clock().Advance(2 * time.Minute)
	rowlocktest.Eventually(t, gone)
}

// TestHistory: each version of an object is there, of objects of one name one after another.
func TestHistory(t *testing.T) {
	s := rowlocktest.Start(t)
	maps := clients(t, s.Config()).CoreV1().ConfigMaps("default")
	for range 2 {
		create(t, s, configMap("a", "v", "1"))
		for _, v := range []string{"2", "2", "3"} {
			if _, err := maps.Update(t.Context(), configMap("a", "v", v), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		create(t, s, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "other"}})
		if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	h := s.History(configMaps, "default", "a")
	if got := fmt.Sprint(len(h), h.Transitions("data", "v"), h[len(h)/2:].Transitions("metadata", "name")); got != "8 [1 2 3  1 2 3 ] [a ]" {
		t.Error(got)
	}
	if !h[3].Deleted || h[3].At.IsZero() || h[0].Object.GetResourceVersion() != fmt.Sprint(h[0].Revision) || len(h.Since(h[3].Revision)) != 4 || len(h.Since(s.Revision())) != 0 {
		t.Errorf("%+v", h)
	}
	want := fmt.Sprintf("REVISION  OBJECT     CHANGED\n%-8d  default/a  data.v: \"1\" → \"2\"\n", h[1].Revision)
	if got := h[1:2].String(); got != want || strings.Join(h[3].Changed, "") != "deleted" {
		t.Errorf("%s and not %s", h, want)
	}
	second := s.Await(configMaps, "default", "a", h[3].Revision, rowlocktest.Field("2", "data", "v"))
	if second.Revision != h[5].Revision {
		t.Errorf("%+v", second)
	}
	s.Await(configMaps, "default", "a", second.Revision, rowlocktest.Absent)
	s.Never(configMaps, "default", "a", 0, rowlocktest.Field("4", "data", "v"))
	quiet := &recordingTB{TB: t}
	cloned := s.Clone(quiet)
	cloned.Never(configMaps, "default", "a", 0, rowlocktest.Field("3", "data", "v"))
	if len(quiet.errors) != 2 || !strings.Contains(quiet.errors[0], `"v":"3"`) {
		t.Errorf("%q", quiet.errors)
	}
}

// recordingTB is a testing.TB that records errors instead of failing.
type recordingTB struct {
	testing.TB
	errors []string
}

// Errorf implements testing.TB.
func (t *recordingTB) Errorf(format string, args ...any) {
	t.errors = append(t.errors, fmt.Sprintf(format, args...))
}

const definition = `
kind: List
apiVersion: v1
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: oars.rowing.example}
spec:
  group: rowing.example
  scope: Namespaced
  names: {plural: oars, kind: Oar}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// Boat is a kind as a Go type.
type Boat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Seats int `json:"seats"`
	} `json:"spec"`
}

// TestKindsOfATest: kinds come from files, and from Go types, and are served when Start returns.
func TestKindsOfATest(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "bases"), 0o755), os.WriteFile(filepath.Join(dir, "bases", "oars.yaml"), []byte(definition), 0o600), os.WriteFile(filepath.Join(dir, "README.md"), []byte("no"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := rowlocktest.Start(t, rowlocktest.CRDs(dir), rowlocktest.Kinds(embed.Kind{Group: "rowing.example", Version: "v1", Object: Boat{}}))
	for _, on := range []*rowlocktest.Server{s, s.Clone(t)} {
		client, err := dynamic.NewForConfig(on.Config())
		if err != nil {
			t.Fatal(err)
		}
		for _, plural := range []string{"oars", "boats"} {
			gvr := schema.GroupVersionResource{Group: "rowing.example", Version: "v1", Resource: plural}
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rowing.example/v1", "kind": map[string]string{"oars": "Oar", "boats": "Boat"}[plural],
				"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"seats": int64(2)}}}
			if _, err := client.Resource(gvr).Namespace("default").Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
				t.Errorf("%s: %v", plural, err)
			}
			if got := on.History(gvr, "default", "a").Transitions("spec", "seats"); !slices.Equal(got, []string{"2"}) {
				t.Errorf("%s: %q", plural, got)
			}
		}
	}
}

// TestRecording: the table has the requests of a client, their changes and their answers.
func TestRecording(t *testing.T) {
	s := rowlocktest.Start(t)
	cfg := s.Config()
	cfg.UserAgent = "rower/1.0"
	maps := clients(t, cfg).CoreV1().ConfigMaps("default")
	create(t, s, configMap("before"))
	all, writes := s.Record(nil), s.Record(func(r *rowlocktest.Request) bool { return rowlocktest.Writes(r) && rowlocktest.By("rower")(r) })
	ctx := context.Background()
	do := func(_ *corev1.ConfigMap, err error) {
		if err != nil {
			t.Log(err)
		}
	}
	do(maps.Create(ctx, configMap("a", "v", "1"), metav1.CreateOptions{}))
	do(maps.Create(ctx, configMap("a", "v", "1"), metav1.CreateOptions{}))
	do(maps.Update(ctx, configMap("a", "v", "2", "w", "long"), metav1.UpdateOptions{}))
	do(maps.Update(ctx, configMap("a", "v", "2", "w", "long"), metav1.UpdateOptions{}))
	do(maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":["x.example/y"],"annotations":{"a.b/c":"d"}}}`), metav1.PatchOptions{}))
	do(maps.Get(ctx, "a", metav1.GetOptions{}))
	s.Inject(rowlocktest.Fault{Verb: "patch", Times: 1, Effect: rowlocktest.LoseAnswer()})
	do(maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"w":null}}`), metav1.PatchOptions{}))
	do(nil, maps.Delete(ctx, "a", metav1.DeleteOptions{}))
	do(maps.Patch(ctx, "a", types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`), metav1.PatchOptions{}))
	do(maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "dry"}}, metav1.CreateOptions{DryRun: []string{"All"}}))
	create(t, s, configMap("after"))
	writes.Stop()
	do(maps.Create(ctx, configMap("unseen"), metav1.CreateOptions{}))
	want := `VERB    RESOURCE    OBJECT       AGENT      ANSWER             CHANGED
create  configmaps  default/a    rower/1.0  201                created
create  configmaps  default/a    rower/1.0  409 AlreadyExists
update  configmaps  default/a    rower/1.0  200                data.v: "1" → "2", data.w: none → "long"
update  configmaps  default/a    rower/1.0  200
patch   configmaps  default/a    rower/1.0  200                metadata.annotations: none → {"a.b/c":"d"}, metadata.finalizers: none → ["x.example/y"]
patch   configmaps  default/a    rower/1.0  lost               data.w: "long" → none
delete  configmaps  default/a    rower/1.0  200                metadata.deletionGracePeriodSeconds: none → 0, metadata.deletionTimestamp: none → "set"
patch   configmaps  default/a    rower/1.0  200                deleted
create  configmaps  default/dry  rower/1.0  201 dry run
`
	if got := writes.String(); got != want {
		t.Errorf("the output is\n%s\nwant\n%s", got, want)
	}
	if n := len(all.Requests()); n != 12 {
		t.Errorf("%d requests in all", n)
	}
}
