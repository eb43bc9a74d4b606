//go:build unix

package faults

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

func copies() []Fault {
	return []Fault{{Name: "copy", What: "an operator copies objects of a restored backup into an empty cluster", Often: 1, run: func(ctx context.Context, e *env) outcome {
		o := outcome{what: "a copy of some objects into another cluster", server: -1}
		wrong, err := e.copies(context.WithoutCancel(ctx))
		o.wrong, o.absent = text(wrong), err
		return o
	}}}
}

// The fault copies the objects of these resources that have a label.
var (
	copiedResources = []string{"configmaps", "leases.coordination.k8s.io"}
	copiedSpaces    = []string{"red", "blue"}
)

const copiedLabel = "on=yes"

// copies makes a backup, restores it, and copies objects of that, which nothing changes any more, into the cluster of another server. wrong
// is a command that failed, or an object that is missing or different; err breaks no promise.
func (e *env) copies(ctx context.Context) (wrong, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	dir, err := os.MkdirTemp(e.c.Dir(), "copy-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, source, target := filepath.Join(dir, "a.bak"), "sqlite:"+filepath.Join(dir, "source.db"), "sqlite:"+filepath.Join(dir, "target.db")
	for _, args := range [][]string{{"backup", file, "--store", e.c.StoreURL()}, {"restore", file, "--store", source}} {
		if _, err := e.c.Store(ctx, args...); err != nil {
			return err, nil
		}
	}
	s, err := harness.Start(ctx, harness.Options{Store: target, DataDir: filepath.Join(dir, "data"), Binary: e.c.Binary()})
	if err != nil {
		return nil, fmt.Errorf("starting the server of another cluster: %w", err)
	}
	defer s.Kill()
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	args := []string{"copy", "--store", source, "--to-kubeconfig", s.Kubeconfig, "--resources", strings.Join(copiedResources, ","), "-l", copiedLabel}
	for _, ns := range copiedSpaces {
		code, answer, err := request(ctx, client, http.MethodPost, s.URL+"/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, ns))
		if err != nil || code != http.StatusCreated {
			return nil, fmt.Errorf("making the namespace of copies: %d %w %s", code, err, answer)
		}
		args = append(args, "-n", ns)
	}
	if _, err := e.c.Command(ctx, append(args, e.c.Keys()...)...); err != nil {
		return err, nil
	}
	_, want, err := e.c.Content(ctx, source, e.ours)
	if err != nil {
		return nil, fmt.Errorf("reading a restored backup: %w", err)
	}
	_, got, err := e.c.Content(ctx, target, e.ours)
	if err != nil {
		return nil, fmt.Errorf("reading copies: %w", err)
	}
	return differ(want, got), nil
}

// differ returns how the copies differ from the objects that were to be copied; nil: they do not. Objects that are being deleted are not
// copied.
func differ(want, got []history.Row) error {
	copied := map[history.Key]history.Row{}
	for _, r := range got {
		copied[r.Key] = r
	}
	for _, r := range want {
		if r.State == nil || !r.State.On || r.State.Going || !slices.Contains(copiedResources, r.Key.Resource) || !slices.Contains(copiedSpaces, r.Key.Namespace) {
			continue
		}
		c, ok := copied[r.Key]
		delete(copied, r.Key)
		switch {
		case !ok:
			return fmt.Errorf("a copy lacks %s", r.Key)
		case !c.State.On || !maps.Equal(c.State.Fields, r.State.Fields):
			return fmt.Errorf("the copy of %s has on=%v %v, and the object has on=%v %v", r.Key, c.State.On, c.State.Fields, r.State.On, r.State.Fields)
		}
	}
	for k, r := range copied {
		if r.State != nil && r.State.On {
			return fmt.Errorf("a copy has %s, which was not to be copied", k)
		}
	}
	return nil
}
