package elections_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/transport"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/controllers/elections"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/servertest"
)

// electing returns a server that chooses leaders, whose candidates have so long to answer.
func electing(t *testing.T, wait time.Duration) *kubernetes.Clientset {
	return electingAs(t, wait, func(t http.RoundTripper) http.RoundTripper { return asAdmin{t} }, "--runtime-config="+ours+"=true")
}

// electingAs is electing with other flags and a transport of the client.
func electingAs(t *testing.T, wait time.Duration, wrap func(http.RoundTripper) http.RoundTripper, args ...string) *kubernetes.Clientset {
	t.Helper()
	flags := servertest.Complete(t, append(args, "--feature-gates=CoordinatedLeaderElection=true")...)
	s := servertest.Start(t, flags, func(c *server.Config) {
		c.Controllers.Runs = func(name string) bool { return name == "elections" }
		c.Controllers.Elections = &elections.Config{
			Identity: "this-server", Wait: wait, Times: reconcile.LeaseTimes{Duration: 2 * time.Second, Deadline: time.Second, Retry: 50 * time.Millisecond},
		}
	})
	client, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: s.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, &http.Client{Transport: wrap(s.Client.Transport)})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// asAdmin adds the token of the user that may do everything. The library of clients knows candidates in
// v1beta1, a later version than the server has; the fields are the same.
type asAdmin struct{ http.RoundTripper }

const theirs, ours = "coordination.k8s.io/v1beta1", "coordination.k8s.io/v1alpha2"

func (a asAdmin) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+servertest.Token)
	if !strings.Contains(r.URL.Path, theirs) {
		return a.RoundTripper.RoundTrip(r)
	}
	r.URL.Path = strings.Replace(r.URL.Path, theirs, ours, 1)
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.ReplaceAll(body, []byte(theirs), []byte(ours))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	answer, err := a.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Header.Del("Content-Length")
	answer.ContentLength = -1
	from, to := io.Pipe()
	body := answer.Body
	go func() { // which ends with the answer
		lines := bufio.NewReader(body)
		for {
			line, err := lines.ReadBytes('\n')
			if _, broken := to.Write(bytes.ReplaceAll(line, []byte(ours), []byte(theirs))); broken != nil || err != nil {
				to.CloseWithError(err)
				return
			}
		}
	}()
	answer.Body = struct {
		io.Reader
		io.Closer
	}{from, closers{body, from}}
	return answer, nil
}

type closers []io.Closer

func (c closers) Close() error {
	var errs []error
	for _, one := range c {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// TestNewestCandidates: a server of the newest release that serves candidates only in v1beta1 chooses leaders, too.
func TestNewestCandidates(t *testing.T) {
	client := electingAs(t, time.Second, func(rt http.RoundTripper) http.RoundTripper {
		return transport.NewBearerAuthRoundTripper(servertest.Token, rt)
	}, "--emulated-version=1.36", "--runtime-config="+theirs+"=true")
	<-join(t, client, "a", "1.32.0").leads
}

// component is one that takes part in the election of kube-system/app with the library of
// clients.
type component struct {
	leads, ended chan struct{}
	leave        context.CancelFunc
}

func join(t *testing.T, client kubernetes.Interface, name, emulation string) *component {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	c := &component{leads: make(chan struct{}), ended: make(chan struct{}), leave: leave}
	candidate, _, err := leaderelection.NewCandidate(client, metav1.NamespaceSystem, name, "app", "1.32.0", emulation, coordinationv1.OldestEmulationVersion)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, metav1.NamespaceSystem, "app", client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
	if err != nil {
		t.Fatal(err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: "app", Coordinated: true, ReleaseOnCancel: true, LeaseDuration: time.Second, RenewDeadline: 500 * time.Millisecond, RetryPeriod: 50 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(c.leads) }, OnStoppedLeading: func() {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	both.Go(func() { candidate.Run(ctx) })
	both.Go(func() { elector.Run(ctx) })
	go func() {
		both.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		leave()
		<-c.ended
	})
	return c
}

// soon waits for something that happens to a component.
func soon(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(2 * time.Minute):
		t.Fatal("in vain: " + what)
	}
}

// TestElection has components of different versions put themselves forward, as stock ones do
// with the library of clients: the one that emulates the oldest version leads, also when it
// comes later, and when it goes, the next does.
func TestElection(t *testing.T) {
	client := electing(t, 300*time.Millisecond)
	newer := join(t, client, "newer_1", "1.32.0")
	soon(t, newer.leads, "the only one leads")
	older := join(t, client, "older_1", "1.31.0")
	soon(t, older.leads, "the older version leads when the newer one has gone")
	third := join(t, client, "third_1", "1.32.0")
	servertest.Eventually(t, func() bool {
		l, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), "app", metav1.GetOptions{})
		return err == nil && ptr.Deref(l.Spec.HolderIdentity, "") == "older_1" && ptr.Deref(l.Spec.Strategy, "") == coordinationv1.OldestEmulationVersion
	})
	newer.leave() // it was chosen already once and leads no more
	soon(t, newer.ended, "the first one ends")
	older.leave()
	soon(t, third.leads, "the other one leads when the older one is gone")
}
