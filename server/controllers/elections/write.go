package elections

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/election"
)

// agent is the field manager of elections' writes.
const agent = "kube-apiserver"

const (
	pingsAtOnce   = 20  // candidates of one election that are pinged before other elections have their turn
	removedAtOnce = 100 // expired candidates that are deleted before elections have their turn
)

func (e *Controller) candidatePath(namespace, name string) string {
	return "/apis/" + e.Served + "/namespaces/" + url.PathEscape(namespace) + "/leasecandidates/" + url.PathEscape(name)
}

// ping sets the pingTime of candidates.
func (e *Controller) ping(ctx context.Context, key reconcile.Key, list []*election.Candidate, now time.Time) error {
	for _, c := range list[:min(len(list), pingsAtOnce)] {
		change := map[string]any{
			"metadata": map[string]string{"resourceVersion": strconv.FormatInt(c.Revision, 10)},
			"spec":     map[string]any{"pingTime": metav1.NewMicroTime(now)},
		}
		err := e.API.Call(ctx, agent, http.MethodPatch, e.candidatePath(key.Namespace, c.Name), reconcile.MergePatch, change, nil)
		if err != nil && !reconcile.Superseded(err) {
			return err
		}
	}
	return nil
}

// write creates a Lease, or changes the one that was read.
func (e *Controller) write(ctx context.Context, key reconcile.Key, have *lease, spec *coordinationv1.LeaseSpec) error {
	var err error
	if have.spec == nil {
		made := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}, Spec: *spec}
		err = e.API.Call(ctx, agent, http.MethodPost, reconcile.LeasesPath(key.Namespace), reconcile.JSON, made, nil)
	} else {
		change := map[string]any{
			"metadata": map[string]string{"resourceVersion": strconv.FormatInt(have.revision, 10)},
			"spec": map[string]any{
				"holderIdentity": spec.HolderIdentity, "preferredHolder": spec.PreferredHolder, "strategy": spec.Strategy,
				"acquireTime": spec.AcquireTime, "renewTime": spec.RenewTime, "leaseDurationSeconds": spec.LeaseDurationSeconds,
			},
		}
		err = e.API.Call(ctx, agent, http.MethodPatch, reconcile.LeasesPath(key.Namespace)+"/"+url.PathEscape(key.Name), reconcile.MergePatch, change, nil)
	}
	if err == nil && spec.HolderIdentity != nil {
		e.chosen.Log(ctx, e.Log, slog.LevelInfo, "a leader was chosen", "namespace", key.Namespace, "lease", key.Name,
			"holder", *spec.HolderIdentity, "preferred", ptr.Deref(spec.PreferredHolder, ""))
	}
	return err
}

// remove deletes candidates that were not renewed for long, and returns when to do so again. It keeps recently created
// ones: their clock may be wrong. It retries failed deletions at the same time.
func (e *Controller) remove(ctx context.Context) time.Duration {
	now := e.Now()
	tried, removed := 0, 0
	for key, of := range e.entries {
		c := e.contests[of.lease].candidates[key.Name]
		if of.going || !c.Expired(now) || now.Sub(c.Created()) < election.Lasts {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if tried == removedAtOnce {
			if removed > 0 {
				return e.loop.Retry
			}
			break
		}
		tried++
		options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new(strconv.FormatInt(c.Revision, 10))}}
		if err := e.API.Call(ctx, agent, http.MethodDelete, e.candidatePath(key.Namespace, key.Name), reconcile.JSON, options, nil); err != nil && !reconcile.Superseded(err) {
			e.loop.Failed(ctx, key, fmt.Errorf("removing an expired candidate: %w", err))
			continue
		}
		removed++
	}
	return removeEvery
}
