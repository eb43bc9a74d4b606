package eventrate_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/eventrate"
	"github.com/rowlock/rowlock/server/kinds"
)

func event(namespace, user, source string) *admission.Attributes {
	return &admission.Attributes{
		Operation: admission.Create, Resource: &kinds.Resource{Plural: "events"}, Namespace: namespace, User: &authx.Identity{Name: user},
		Object: &corev1.Event{Source: corev1.EventSource{Component: source}, InvolvedObject: corev1.ObjectReference{Kind: "Pod"}},
	}
}

func TestLimits(t *testing.T) {
	now := time.Unix(0, 0)
	of := func(limits ...eventrate.Limit) func(*admission.Attributes) string {
		p := eventrate.New(limits, func() time.Time { return now })
		return func(a *admission.Attributes) string {
			err := p.Validate(t.Context(), a)
			if err != nil && !apierrors.IsTooManyRequests(err) {
				t.Errorf("%v is another error", err)
			}
			return strings.TrimPrefix(fmt.Sprint(err), "Too many requests: ")
		}
	}
	ask := of(eventrate.Limit{Type: "Server", QPS: 2, Burst: 3})
	for i, want := range []string{"<nil>", "<nil>", "<nil>", "limit reached on type Server for key "} {
		if got := ask(event("n", "u", "s")); got != want {
			t.Errorf("%d: %s", i, got)
		}
	}
	now = now.Add(time.Second / 2)
	if got := ask(event("n", "u", "s")); got != "<nil>" {
		t.Errorf("after a while: %s", got)
	}
	if got := ask(event("n", "u", "s")); got == "<nil>" {
		t.Error("a bucket fills too fast")
	}
	dry := event("n", "u", "s")
	dry.DryRun = true
	other := event("n", "u", "s")
	other.Resource = &kinds.Resource{Plural: "pods"}
	for _, a := range []*admission.Attributes{dry, other} {
		if got := ask(a); got != "<nil>" {
			t.Errorf("not limited: %s", got)
		}
	}

	ask = of(eventrate.Limit{Type: "Namespace", QPS: 1, Burst: 1}, eventrate.Limit{Type: "User", QPS: 1, Burst: 2}, eventrate.Limit{Type: "SourceAndObject", QPS: 1, Burst: 3})
	for _, c := range []struct{ namespace, user, source, want string }{
		{"a", "u", "s", "<nil>"},
		{"a", "u", "s", "limit reached on type Namespace for key a"},
		{"b", "u", "s", "limit reached on type User for key u"},
		{"c", "v", "s", "limit reached on type SourceAndObject for key sPod"},
		{"c", "v", "t", "limit reached on type Namespace for key c"},
		{"a", "u", "s", "[limit reached on type Namespace for key a, limit reached on type User for key u, limit reached on type SourceAndObject for key sPod]"},
	} {
		if got := ask(event(c.namespace, c.user, c.source)); got != c.want {
			t.Errorf("%v: %s", c, got)
		}
	}

	ask = of(eventrate.Limit{Type: "Namespace", QPS: 1, Burst: 1, CacheSize: 1})
	for i, namespace := range []string{"a", "b", "a"} {
		if got := ask(event(namespace, "u", "s")); got != "<nil>" {
			t.Errorf("%d: a forgotten bucket is full again: %s", i, got)
		}
	}
}

func TestParseLimits(t *testing.T) {
	front := "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n"
	got, err := eventrate.ParseLimits([]byte(front + "limits: [{type: Namespace, qps: 50, burst: 100, cacheSize: 2000}]"))
	if err != nil || len(got) != 1 || got[0] != (eventrate.Limit{Type: "Namespace", QPS: 50, Burst: 100, CacheSize: 2000}) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":     "limits: Invalid value",
		front:  "must not be empty",
		"a: b": "unknown field",
		"{}":   "is not Configuration",
		front + "limits: [{type: Any, qps: 1, burst: 1}]":                 "limits[0].type: Unsupported value",
		front + "limits: [{type: Server, qps: 0, burst: 1}]":              "limits[0].qps: Invalid value: 0: must be positive",
		front + "limits: [{type: Server, qps: 1}]":                        "limits[0].burst: Invalid value: 0: must be positive",
		front + "limits: [{type: User, qps: 1, burst: 1, cacheSize: -1}]": "limits[0].cacheSize: Invalid value: -1: must not be negative",
	} {
		data := []byte(text)
		if text == "" {
			data = nil
		}
		if _, err := eventrate.ParseLimits(data); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestLongKeys: what an event is about may be long, and does not stay in memory.
func TestLongKeys(t *testing.T) {
	const long, events = 1 << 20, 64
	p := eventrate.New([]eventrate.Limit{{Type: "Namespace", QPS: 1, Burst: 1}, {Type: "User", QPS: 1, Burst: 1}, {Type: "SourceAndObject", QPS: 1, Burst: 1}}, func() time.Time { return time.Unix(0, 0) })
	used := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := used()
	for i := range events {
		text := func() string { return strings.Repeat("a", long) + fmt.Sprint(i) }
		if err := p.Validate(t.Context(), event(text(), text(), text())); err != nil {
			t.Fatal(err)
		}
	}
	if more := used() - before; more > events*long/4 {
		t.Errorf("%d bytes stay in memory after %d events", more, events)
	}
	if err := p.Validate(t.Context(), event(strings.Repeat("a", long)+"0", "u", "s")); err == nil {
		t.Error("a long key is forgotten")
	}
}
