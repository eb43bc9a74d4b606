package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

func runPods(keep int) func(*controllertest.FakeAPI) func(context.Context) error {
	return func(w *controllertest.FakeAPI) func(context.Context) error {
		return (&Pods{Base: reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog}, Keep: keep}).Run
	}
}

// TestPodsOfMissingNodes: the pods of a node that has been missing for 40 seconds, or that is
// unknown, are marked as failed for that reason and deleted.
func TestPodsOfMissingNodes(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set("nodes", "", "there", `{}`)
		w.Set("pods", "a", "stays", `{"spec":{"nodeName":"there"},"status":{"phase":"Running"}}`)
		w.Set("pods", "a", "unplaced", `{"spec":{},"status":{"phase":"Pending"}}`)
		w.Set("pods", "a", "orphan", `{"spec":{"nodeName":"gone"},"status":{"phase":"Running"}}`)
		w.Set("pods", "a", "ended", `{"spec":{"nodeName":"gone"},"status":{"phase":"Succeeded"}}`)
		w.Set("pods", "a", "early", `{"spec":{"nodeName":"late"},"status":{"phase":"Running"}}`)
		failed := ""
		w.Early = func(method, path string) {
			if method == "DELETE" && strings.HasSuffix(path, "/orphan") {
				failed = w.Read("pods", "a", "orphan")
			}
		}
		controllertest.Advance(59 * time.Second) // missed after 20 seconds, and looked for 40 seconds later
		if got := w.Calls(); len(got) > 0 {
			t.Errorf("too early: %v", got)
		}
		w.Set("nodes", "", "late", `{}`)
		controllertest.Advance(2 * time.Second)
		want := []string{"GET /api/v1/nodes/gone", "DELETE /api/v1/namespaces/a/pods/ended", "PATCH /api/v1/namespaces/a/pods/orphan/status", "DELETE /api/v1/namespaces/a/pods/orphan"}
		if got := w.Calls(); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		for _, part := range []string{`"phase":"Failed"`, `"type":"DisruptionTarget"`, `"reason":"DeletionByPodGC"`, `"message":"PodGC: node no longer exists"`} {
			if !strings.Contains(failed, part) {
				t.Errorf("%s is not in %s", part, failed)
			}
		}
	}, runPods(0))
}

// TestNodesThatOthersKnow: a node that this server does not have, and the API does, is there.
func TestNodesThatOthersKnow(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set("pods", "a", "p", `{"spec":{"nodeName":"n"},"status":{"phase":"Running"}}`)
		answers := []error{errors.New("no answer"), nil}
		w.Refuse = func(method, path string) error {
			if method != "GET" {
				return nil
			}
			err := answers[0]
			if answers = answers[1:]; err == nil {
				w.Set("nodes", "", "n", `{}`) // the node is created meanwhile
			}
			return err
		}
		controllertest.Advance(10 * time.Minute)
		if got := w.Calls(); len(got) != 2 || w.Read("pods", "a", "p") == "" {
			t.Errorf("%v", got)
		}
	}, runPods(0))
}

// TestPodsThatNobodyEnds: pods go that are being deleted and have no kubelet that could end
// them: they were never given to one, or theirs is out of service.
func TestPodsThatNobodyEnds(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		const out, going = `"taints":[{"key":"node.kubernetes.io/out-of-service"}]`, `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z"},"spec":{"nodeName":%q},"status":{"phase":"Running"}}`
		ready := func(status string) string {
			return `"status":{"conditions":[{"type":"Ready","status":"` + status + `"}]}`
		}
		w.Set("nodes", "", "down", `{"spec":{`+out+`},`+ready("Unknown")+`}`)
		w.Set("nodes", "", "up", `{"spec":{`+out+`},`+ready("True")+`}`)
		w.Set("nodes", "", "lost", `{"spec":{},`+ready("Unknown")+`}`)
		for _, node := range []string{"down", "up", "lost", ""} {
			w.Set("pods", "a", "on-"+node+"x", fmt.Sprintf(going, node))
		}
		w.Set("pods", "a", "wanted", `{"spec":{"nodeName":"down"},"status":{"phase":"Running"}}`)
		controllertest.Advance(21 * time.Second)
		for name, there := range map[string]bool{"on-downx": false, "on-upx": true, "on-lostx": true, "on-x": false, "wanted": true} {
			if (w.Read("pods", "a", name) != "") != there {
				t.Errorf("%s: is there: %v", name, !there)
			}
		}
	}, runPods(0))
}

// TestPodsThatFinalizersKeep: for a pod that has failed and is kept by finalizers nothing is done.
func TestPodsThatFinalizersKeep(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		const going = `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z","deletionGracePeriodSeconds":%d,"finalizers":["a/b"]},"spec":{},"status":{"phase":"Failed"}}`
		w.Set("pods", "a", "kept", fmt.Sprintf(going, 0))
		controllertest.Advance(time.Minute)
		if got := w.Calls(); len(got) > 0 {
			t.Errorf("%v", got)
		}
		w.Set("pods", "a", "kept", fmt.Sprintf(going, 30))
		controllertest.Advance(21 * time.Second)
		if got := w.Calls(); len(got) != 1 {
			t.Errorf("one that has still time: %v", got)
		}
	}, runPods(0))
}

// TestPodsThatEnded: the newest of them are kept, evicted ones last.
func TestPodsThatEnded(t *testing.T) {
	for _, keep := range []int{0, 3, 9} {
		controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
			for i, name := range []string{"oldest", "older", "evicted", "new", "newest"} {
				status := `"phase":"Failed"`
				if name == "evicted" {
					status += `,"reason":"Evicted"`
				}
				w.Set("pods", "a", name, fmt.Sprintf(`{"metadata":{"creationTimestamp":%q},"spec":{},"status":{%s}}`, controllertest.Ago(time.Hour-time.Duration(i)*time.Minute), status))
			}
			w.Set("pods", "a", "runs", `{"metadata":{"creationTimestamp":"2000-01-01T00:00:00Z"},"spec":{},"status":{"phase":"Running"}}`)
			controllertest.Advance(21 * time.Second)
			var want []string
			if keep == 3 {
				want = []string{"DELETE /api/v1/namespaces/a/pods/evicted", "DELETE /api/v1/namespaces/a/pods/oldest"}
			}
			if got := w.Calls(); !slices.Equal(got, want) {
				t.Errorf("of %d: %v, want %v", keep, got, want)
			}
		}, runPods(keep))
	}
}
