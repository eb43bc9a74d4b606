package copying_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote/copying"
	"github.com/rowlock/rowlock/server/rowlocktest"
)

// source has objects by their resources, in this order.
type source []struct {
	resource string
	objects  []string
}

func (s source) Resources() (names []string) {
	for _, r := range s {
		names = append(names, r.resource)
	}
	return names
}

func (s source) Objects(ctx context.Context, resource string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, r := range s {
			if r.resource != resource {
				continue
			}
			for _, o := range r.objects {
				if !yield([]byte(o), ctx.Err()) {
					return
				}
			}
		}
	}
}

// target is a server that is copied into.
type target struct {
	*rowlocktest.Server
	end *rowlocktest.Endpoint
	c   *remote.Client // of an administrator
}

func newTarget(t *testing.T, namespaces ...string) *target {
	t.Helper()
	s := &target{Server: rowlocktest.Start(t)}
	for _, name := range namespaces {
		s.Namespace(name)
	}
	s.end = s.Listen()
	s.c = client(t, s.end.Config())
	return s
}

// client returns a Client of the host of a configuration.
func client(t *testing.T, cfg *rest.Config) *remote.Client {
	t.Helper()
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return clientOf(t, cfg.Host, h, nil)
}

func clientOf(t *testing.T, url string, h *http.Client, change func(*remote.Config)) *remote.Client {
	t.Helper()
	cfg := remote.Config{URL: url, HTTP: h, QPS: 1e6, Burst: 1e6, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	if change != nil {
		change(&cfg)
	}
	c, err := remote.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// run copies, and fails where the run itself does.
func (s *target) run(t *testing.T, from source, o copying.Options) *copying.Report {
	t.Helper()
	report, err := copying.Run(t.Context(), s.c, from, o)
	if err != nil {
		t.Fatalf("the run ended: %v, after %+v", err, report.Details)
	}
	return report
}

// get returns an object of the target; nil: there is none.
func (s *target) get(t *testing.T, path string) map[string]any {
	t.Helper()
	data, err := s.c.Do(t.Context(), remote.Request{Method: http.MethodGet, Path: path})
	if remote.Is(err, http.StatusNotFound) {
		return nil
	}
	var object map[string]any
	if err == nil {
		err = json.Unmarshal(data, &object)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return object
}

// apply writes an object of the target as another manager.
func (s *target) apply(t *testing.T, path, body string) {
	t.Helper()
	r := remote.Request{Method: http.MethodPatch, Path: path, Query: map[string][]string{"fieldManager": {"other"}, "force": {"true"}}, ContentType: "application/apply-patch+yaml", Body: []byte(body)}
	if _, err := s.c.Do(t.Context(), r); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// field returns the value at a path of an object, as text; "<nil>" if there is none.
func field(object any, path ...any) string {
	for _, p := range path {
		switch at := p.(type) {
		case string:
			m, _ := object.(map[string]any)
			object = m[at]
		case int:
			list, _ := object.([]any)
			if at >= len(list) {
				return "<nil>"
			}
			object = list[at]
		}
	}
	return fmt.Sprint(object)
}

// wantTotal compares the numbers of a report: created, changed, unchanged, skipped,
// conflicts, failed.
func wantTotal(t *testing.T, what string, r *copying.Report, numbers ...int64) {
	t.Helper()
	n := r.Total
	if got := []int64{n.Created, n.Changed, n.Unchanged, n.Skipped, n.Conflicts, n.Failed}; !slices.Equal(got, numbers) {
		t.Errorf("%s: created, changed, unchanged, skipped, conflicts, failed are %v, want %v: %+v", what, got, numbers, r.Details)
	}
}

// wantDetail looks for a detail.
func wantDetail(t *testing.T, r *copying.Report, o copying.Outcome, resource, name, reason string) {
	t.Helper()
	if !slices.ContainsFunc(r.Details, func(d copying.Detail) bool {
		return d.Outcome == o && d.Resource == resource && d.Name == name && strings.Contains(d.Reason, reason)
	}) {
		t.Errorf("no line reports that %s %s is %s: %s; reported is %+v", resource, name, o, reason, r.Details)
	}
}

func configMap(name, more string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"a","uid":"u-%s"%s},"data":{"k":"v"}}`, name, name, more)
}

// owned returns a part of metadata.
func owned(kind, name, uid string) string {
	return fmt.Sprintf(`,"ownerReferences":[{"apiVersion":"v1","kind":%q,"name":%q,"uid":%q}]`, kind, name, uid)
}
