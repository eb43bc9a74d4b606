package rowlocktest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/rowlock/rowlock/server/rowlocktest"
)

// runGreeter is the controller that is tested here: it writes into each ConfigMap that has a
// name in it a greeting for that name. It runs until ctx ends.
func runGreeter(ctx context.Context, cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "greeter"
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	maps := factory.Core().V1().ConfigMaps()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](time.Millisecond, time.Second))
	defer queue.ShutDown()
	add := func(obj any) {
		if key, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			queue.Add(key)
		}
	}
	if _, err := maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())
	context.AfterFunc(ctx, queue.ShutDown)
	for {
		key, stopped := queue.Get()
		if stopped {
			return nil
		}
		if err := greet(ctx, client, key); err != nil {
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

// greet handles one ConfigMap.
func greet(ctx context.Context, client kubernetes.Interface, key cache.ObjectName) error {
	maps := client.CoreV1().ConfigMaps(key.Namespace)
	m, err := maps.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || m.Data["name"] == "" {
		return err
	}
	greeting := "hello, " + m.Data["name"]
	if m.Data["greeting"] == greeting {
		return nil
	}
	m.Data["greeting"] = greeting
	_, err = maps.Update(ctx, m, metav1.UpdateOptions{})
	return err
}

// startGreeter runs the controller until the test ends.
func startGreeter(t *testing.T, cfg *rest.Config) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- runGreeter(ctx, cfg) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

var configMapsOf = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// TestGreeting: the controller does what it is for.
func TestGreeting(t *testing.T) {
	srv := rowlocktest.Start(t)
	startGreeter(t, srv.Config())

	client := kubernetes.NewForConfigOrDie(srv.Config())
	alice := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Data: map[string]string{"name": "Alice"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), alice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	srv.Await(configMapsOf, "default", "alice", 0, rowlocktest.Field("hello, Alice", "data", "greeting"))
}

// TestGreetingInSpiteOfFaults: it does so too where writes conflict, an answer is lost after
// the write, and its watch ends. And it does it once.
func TestGreetingInSpiteOfFaults(t *testing.T) {
	srv := rowlocktest.Start(t)
	srv.Inject(rowlocktest.Fault{Verb: "update", Resource: "configmaps", Agent: "greeter", Times: 2, Effect: rowlocktest.Conflict()})
	lost := srv.Inject(rowlocktest.Fault{Verb: "update", Resource: "configmaps", Agent: "greeter", Times: 1, Effect: rowlocktest.LoseAnswer()})
	srv.Inject(rowlocktest.Fault{Verb: "watch", Resource: "configmaps", Agent: "greeter", Times: 1, Effect: rowlocktest.CloseWatch(1)})
	record := srv.Record(func(r *rowlocktest.Request) bool { return rowlocktest.Writes(r) && rowlocktest.By("greeter")(r) })
	startGreeter(t, srv.Config())

	client := kubernetes.NewForConfigOrDie(srv.Config())
	alice := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Data: map[string]string{"name": "Alice"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), alice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	srv.Await(configMapsOf, "default", "alice", 0, rowlocktest.Field("hello, Alice", "data", "greeting"))
	rowlocktest.Eventually(t, func() error {
		if n := len(record.Requests()); n < 3 || lost.Hits() != 1 {
			return fmt.Errorf("%d writes", n)
		}
		return nil
	})
	want := `VERB    RESOURCE    OBJECT         AGENT    ANSWER        CHANGED
update  configmaps  default/alice  greeter  409 Conflict
update  configmaps  default/alice  greeter  409 Conflict
update  configmaps  default/alice  greeter  lost          data.greeting: none → "hello, Alice"
`
	if got := record.String(); got != want {
		t.Errorf("the controller did\n%s\nand not\n%s", got, want)
	}
	if seen := srv.History(configMapsOf, "default", "alice").Transitions("data", "greeting"); len(seen) != 2 {
		t.Errorf("the greeting was %q", seen)
	}
}

// TestGreetingByRights: with the rights of its role it can work, and with less it cannot.
func TestGreetingByRights(t *testing.T) {
	srv := rowlocktest.Start(t)
	client := kubernetes.NewForConfigOrDie(srv.Config())
	bob := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bob"}, Data: map[string]string{"name": "Bob"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), bob, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	prepared := srv.Snapshot()

	t.Run("enough", func(t *testing.T) {
		srv := srv.CloneOf(t, prepared)
		srv.Allow("robot", "", rowlocktest.Rule("", []string{"configmaps"}, "get", "list", "watch", "update"))
		startGreeter(t, srv.As("robot"))
		srv.Await(configMapsOf, "default", "bob", 0, rowlocktest.Field("hello, Bob", "data", "greeting"))
	})
	t.Run("too few", func(t *testing.T) {
		srv := srv.CloneOf(t, prepared)
		srv.Allow("robot", "", rowlocktest.Rule("", []string{"configmaps"}, "get", "list", "watch"))
		record := srv.Record(rowlocktest.Writes)
		startGreeter(t, srv.As("robot"))
		rowlocktest.Eventually(t, func() error {
			for _, r := range record.Requests() {
				if r.Code == 403 && r.User == "robot" {
					return nil
				}
			}
			return fmt.Errorf("nothing was refused:\n%s", record)
		})
		srv.Never(configMapsOf, "default", "bob", 0, rowlocktest.Field("hello, Bob", "data", "greeting"))
	})
}

// TestEventsGoAfterAnHour: time is moved, and not waited for.
func TestEventsGoAfterAnHour(t *testing.T) {
	srv := rowlocktest.Start(t)
	client := kubernetes.NewForConfigOrDie(srv.Config())
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "started"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"}}
	if _, err := client.CoreV1().Events("default").Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	srv.Clock().Advance(61 * time.Minute)
	srv.Await(schema.GroupVersionResource{Version: "v1", Resource: "events"}, "default", "started", 0, rowlocktest.Absent)
}
