package embed_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"go.uber.org/goleak"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/embed"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a control plane until the function that it returns is called, or the test ends.
func start(t *testing.T, o embed.Options) (cp *embed.ControlPlane, stop func()) {
	t.Helper()
	cp, err := embed.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- cp.Run(ctx) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			if err := <-done; err != nil {
				t.Errorf("it ended with %v", err)
			}
		}
	}
	t.Cleanup(stop)
	if err := cp.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return cp, stop
}

func clients(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestStays: the objects of one control plane exist in the next one on the same store.
func TestStays(t *testing.T) {
	o := embed.Options{Store: sqlite.At("sqlite:" + filepath.Join(t.TempDir(), "db"))}
	cp, stop := start(t, o)
	if _, err := clients(t, cp.Config()).CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := cp.Ready(t.Context()); !errors.Is(err, embed.ErrEnded) && err != nil {
		t.Error(err)
	}
	cp, _ = start(t, o)
	if _, err := clients(t, cp.Config()).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

type keeper struct{}

// Authenticate implements authx.Authenticator.
func (keeper) Authenticate(r *http.Request) (*authx.Authenticated, bool, error) {
	name := r.Header.Get("Keeper")
	return &authx.Authenticated{Identity: &authx.Identity{Name: name}}, name != "", nil
}

// readers lets everybody read.
type readers struct{}

// Authorize implements authx.Authorizer.
func (readers) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	if a.Verb == "get" || a.Verb == "list" || a.Verb == "watch" {
		return authx.Allow, "", nil
	}
	return authx.NoOpinion, "readers only read", nil
}

// TestOwnAccess: a program's authenticator and authorizer decide about requests over its own
// listener, and no other users are known.
func TestOwnAccess(t *testing.T) {
	cp, _ := start(t, embed.Options{Authenticators: []authx.Authenticator{keeper{}}, Authorizer: readers{}})
	front := httptest.NewServer(cp.Handler())
	defer front.Close()
	for _, c := range []struct {
		method, name string
		code         int
	}{{"GET", "", 401}, {"GET", "alice", 200}, {"DELETE", "alice", 403}} {
		r, _ := http.NewRequestWithContext(t.Context(), c.method, front.URL+"/api/v1/namespaces/default", nil)
		r.Header.Set("Keeper", c.name)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.code {
			t.Errorf("%s by %q: %s, want %d", c.method, c.name, resp.Status, c.code)
		}
	}
	if _, err := clients(t, cp.As("bob")).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if err := clients(t, cp.As("bob")).CoreV1().Namespaces().Delete(t.Context(), "default", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestEndsGracefully: a request under way finishes, a watch ends, and then Run returns.
func TestEndsGracefully(t *testing.T) {
	asked, free := make(chan struct{}), make(chan struct{})
	cp, stop := start(t, embed.Options{Admission: []embed.Admission{{Name: "waits", Validate: func(ctx context.Context, w *embed.Write) error {
		if w.Name == "slow" {
			close(asked)
			<-free
		}
		return nil
	}}}})
	c := clients(t, cp.Config())
	watch, err := c.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made := make(chan error, 1)
	go func() {
		_, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}, metav1.CreateOptions{})
		made <- err
	}()
	<-asked
	ended := make(chan struct{})
	go func() { stop(); close(ended) }()
	for event := range watch.ResultChan() { // until the server ends it
		t.Log(event.Type)
	}
	select {
	case <-ended:
		t.Error("it ended before the request under way")
	default:
	}
	close(free)
	if err := <-made; err != nil {
		t.Errorf("the request under way: %v", err)
	}
	<-ended
}

// TestNeverRun: one that does not run is closed, and is not ready.
func TestNeverRun(t *testing.T) {
	for _, o := range []embed.Options{
		{Controllers: []string{"none"}}, {FeatureGates: []string{"None=true"}}, {RuntimeConfig: []string{"none/v1=true"}}, {DisableAdmission: []string{"None"}}, {Admission: []embed.Admission{{}}},
	} {
		if _, err := embed.New(t.Context(), o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	cp, err := embed.New(t.Context(), embed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := cp.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := cp.Close(); err != nil {
		t.Error(err)
	}
	for _, err := range []error{cp.Ready(t.Context()), cp.Run(t.Context())} {
		if !errors.Is(err, embed.ErrEnded) {
			t.Error(err)
		}
	}
}

// TestCloseWhileItRuns: a second Close and a second Run return at once, and change
// nothing.
func TestCloseWhileItRuns(t *testing.T) {
	cp, _ := start(t, embed.Options{})
	if err := cp.Close(); err != nil {
		t.Error(err)
	}
	if err := cp.Run(t.Context()); !errors.Is(err, embed.ErrEnded) {
		t.Errorf("a second Run: %v", err)
	}
	if _, err := clients(t, cp.Config()).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
