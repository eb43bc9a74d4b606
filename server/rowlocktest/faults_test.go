package rowlocktest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rowlock/rowlock/server/rowlocktest"
)

// TestEffects: clients see each effect, and writes that were done are done.
func TestEffects(t *testing.T) {
	s := rowlocktest.Start(t)
	maps := clients(t, s.Config()).CoreV1().ConfigMaps("default")
	for _, c := range []struct {
		effect rowlocktest.Effect
		is     func(error) bool
		done   bool
	}{
		{rowlocktest.Conflict(), apierrors.IsConflict, false},
		{rowlocktest.Gone(), apierrors.IsResourceExpired, false},
		{rowlocktest.InternalError(), apierrors.IsInternalError, false},
		{rowlocktest.Unavailable(), apierrors.IsServiceUnavailable, false},
		{rowlocktest.Forbidden(), apierrors.IsForbidden, false},
		{rowlocktest.Timeout(), apierrors.IsTimeout, false},
		{rowlocktest.TimeoutAfter(), apierrors.IsTimeout, true},
		{rowlocktest.LoseAnswer(), func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }, true},
		{rowlocktest.Refuse(), func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }, false},
		{rowlocktest.Delay(time.Microsecond), func(err error) bool { return err == nil }, true},
		{rowlocktest.Answer("Teapot", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { http.Error(w, "tea", http.StatusTeapot) }),
			func(err error) bool { return strings.Contains(fmt.Sprint(err), "418") }, false},
	} {
		name := strings.ToLower(c.effect.String())
		rule := s.Inject(rowlocktest.Fault{Verb: "create", Resource: "configmaps", Name: name, Effect: c.effect})
		if _, err := maps.Create(t.Context(), configMap("other-"+name), metav1.CreateOptions{}); err != nil {
			t.Errorf("%s: another name: %v", c.effect, err)
		}
		if _, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{}); !c.is(err) {
			t.Errorf("%s: %v", c.effect, err)
		}
		if rule.Hits() != 1 {
			t.Errorf("%s: %d hits", c.effect, rule.Hits())
		}
		if _, err := maps.Get(t.Context(), name, metav1.GetOptions{}); (err == nil) != c.done {
			t.Errorf("%s: whether it was done: %v", c.effect, err)
		}
		rule.Remove()
		if _, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s: without the rule: %v", c.effect, err)
		}
	}
}

// TestForgottenGroup: a fault that could never have an effect for want of its group is refused.
func TestForgottenGroup(t *testing.T) {
	for resource, want := range map[string]int{"configmaps": 0, "events": 0, "pods/status": 0, "unknown": 0, "deployments/status": 1} {
		recorder := &unstopped{recordingTB{TB: t}}
		rowlocktest.Start(recorder).Inject(rowlocktest.Fault{Resource: resource, Effect: rowlocktest.Conflict()})
		if len(recorder.errors) != want || want > 0 && !strings.Contains(recorder.errors[0], "group apps") {
			t.Errorf("%s: %q", resource, recorder.errors)
		}
	}
}

// unstopped is a test that goes on after what would end it.
type unstopped struct{ recordingTB }

// Fatalf implements testing.TB.
func (t *unstopped) Fatalf(format string, args ...any) { t.Errorf(format, args...) }

// TestRules: whom a rule means, how often, and with what chance.
func TestRules(t *testing.T) {
	s := rowlocktest.Start(t)
	s.Allow("bob", "", rowlocktest.Rule("", []string{"*"}, "*"))
	bob := s.As("bob")
	bob.UserAgent = "bobs/1"
	// fails shows for each of n requests whether it failed.
	fails := func(f rowlocktest.Fault, n int, try func() error) (outcomes string) {
		f.Effect = rowlocktest.Forbidden()
		rule := s.Inject(f)
		defer rule.Remove()
		for range n {
			if err := try(); err == nil {
				outcomes += "."
			} else {
				outcomes += "x"
			}
		}
		if rule.Hits() != strings.Count(outcomes, "x") {
			t.Errorf("%+v: %s with %d hits", f, outcomes, rule.Hits())
		}
		return outcomes
	}
	get := func() error {
		_, err := clients(t, bob).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		return err
	}
	for want, f := range map[string]rowlocktest.Fault{
		"xxxx": {}, "....": {Verb: "list"}, "xxxx ": {Verb: "get", Resource: "namespaces", Name: "default"}, ".... ": {Resource: "namespaces/status"},
		"....  ": {Group: "apps", Resource: "namespaces"}, "xxxx  ": {User: "bob", Agent: "bobs"}, "....   ": {User: "alice"}, "....    ": {Agent: "alices"},
		"xx..": {Times: 2}, ".xx.": {Skip: 1, Times: 2}, "....     ": {Namespace: "other"}, "....      ": {Name: "other"},
	} {
		if got := fails(f, 4, get); got != strings.TrimSpace(want) {
			t.Errorf("%+v: %s, want %s", f, got, want)
		}
	}
	once, again := fails(rowlocktest.Fault{Chance: 0.5, Seed: 7}, 40, get), fails(rowlocktest.Fault{Chance: 0.5, Seed: 7}, 40, get)
	if once != again || !strings.Contains(once, ".") || !strings.Contains(once, "x") {
		t.Errorf("by chance: %s, and again %s", once, again)
	}
}

// TestWatchFaults: a watch that ends after some events can be gone on with, and one that is
// slow loses none.
func TestWatchFaults(t *testing.T) {
	for _, form := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		t.Run(strings.TrimPrefix(form, "application/"), func(t *testing.T) {
			s := rowlocktest.Start(t)
			first := create(t, s, configMap("a"))
			cfg := s.Config()
			cfg.ContentType = form
			maps := clients(t, cfg).CoreV1().ConfigMaps("default")
			for _, name := range []string{"b", "c", "d"} {
				create(t, s, configMap(name))
			}
			follow := func(from string, most int) (names, last string) {
				w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: from})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Stop()
				for event := range w.ResultChan() {
					if event.Type != watch.Added {
						t.Fatalf("%+v", event)
					}
					names, last = names+event.Object.(*corev1.ConfigMap).Name, event.Object.(*corev1.ConfigMap).ResourceVersion
					if len(names) == most {
						break
					}
				}
				return names, last
			}
			s.Inject(rowlocktest.Fault{Verb: "watch", Resource: "configmaps", Times: 2, Effect: rowlocktest.CloseWatch(2)})
			slow := s.Inject(rowlocktest.Fault{Verb: "watch", Resource: "configmaps", Effect: rowlocktest.SlowWatch(time.Millisecond)})
			names, last := follow(first.ResourceVersion, 100)
			if names != "bc" || slow.Hits() != 0 {
				t.Errorf("it was closed after %q", names)
			}
			if names, _ := follow(first.ResourceVersion, 100); names != "bc" {
				t.Errorf("the second was closed after %q", names)
			}
			if names, _ = follow(last, 1); names != "d" || slow.Hits() != 1 {
				t.Errorf("slowly came %q", names)
			}
		})
	}
}

// TestHeldUp: requests that a rule delays continue when the rule is removed, and when the test ends.
func TestHeldUp(t *testing.T) {
	s := rowlocktest.Start(t)
	rule := s.Inject(rowlocktest.Fault{Verb: "create", Effect: rowlocktest.Hold()})
	made := make(chan error)
	c := clients(t, s.Config())
	make1 := func(name string) {
		_, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), configMap(name), metav1.CreateOptions{})
		made <- err
	}
	go make1("a")
	rowlocktest.Eventually(t, func() error {
		if rule.Hits() != 1 {
			return errors.New("nothing is held up")
		}
		return nil
	})
	if got := names(t, s); got != "" {
		t.Errorf("there is %s already", got)
	}
	rule.Remove()
	if err := <-made; err != nil {
		t.Error(err)
	}
}
