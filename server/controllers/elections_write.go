package controllers

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/election"
)

// electionAgent is the field manager of what elections write.
const electionAgent = "kube-apiserver"

const (
	questionsAtOnce = 20  // candidates of one election that are asked before others have their turn
	removedAtOnce   = 100 // expired candidates that go before elections have their turn
)

func leasesPath(namespace string) string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/leases"
}

func candidatePath(namespace, name string) string {
	return "/apis/coordination.k8s.io/v1alpha2/namespaces/" + url.PathEscape(namespace) + "/leasecandidates/" + url.PathEscape(name)
}

// ask writes when candidates were asked whether they are there.
func (e *Elections) ask(ctx context.Context, key place, list []*election.Candidate, now time.Time) error {
	for _, c := range list[:min(len(list), questionsAtOnce)] {
		change := map[string]any{
			"metadata": map[string]string{"resourceVersion": strconv.FormatInt(c.Revision, 10)},
			"spec":     map[string]any{"pingTime": metav1.NewMicroTime(now)},
		}
		err := e.API.Call(ctx, electionAgent, http.MethodPatch, candidatePath(key.namespace, c.Name), "application/merge-patch+json", change, nil)
		if err != nil && !faster(err) {
			return err
		}
	}
	return nil
}

// write makes a Lease, or changes the one that was read.
func (e *Elections) write(ctx context.Context, key place, have *lease, spec *coordinationv1.LeaseSpec) error {
	var err error
	if have.spec == nil {
		made := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: key.name, Namespace: key.namespace}, Spec: *spec}
		err = e.API.Call(ctx, electionAgent, http.MethodPost, leasesPath(key.namespace), "application/json", made, nil)
	} else {
		change := map[string]any{
			"metadata": map[string]string{"resourceVersion": strconv.FormatInt(have.revision, 10)},
			"spec": map[string]any{
				"holderIdentity": spec.HolderIdentity, "preferredHolder": spec.PreferredHolder, "strategy": spec.Strategy,
				"acquireTime": spec.AcquireTime, "renewTime": spec.RenewTime, "leaseDurationSeconds": spec.LeaseDurationSeconds,
			},
		}
		err = e.API.Call(ctx, electionAgent, http.MethodPatch, leasesPath(key.namespace)+"/"+url.PathEscape(key.name), "application/merge-patch+json", change, nil)
	}
	if err == nil && spec.HolderIdentity != nil {
		e.chosen.Log(ctx, e.Log, slog.LevelInfo, "a leader was chosen", "namespace", key.namespace, "lease", key.name,
			"holder", *spec.HolderIdentity, "preferred", ptr.Deref(spec.PreferredHolder, ""))
	}
	if err != nil && faster(err) {
		return nil
	}
	return err
}

// faster says that somebody changed the object first, which will be heard of.
func faster(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// remove deletes candidates that have not renewed themselves for long, and says when to do
// so again. Those stay that were made not long ago: their clock may be wrong. Those that
// cannot go are tried again as late as if they had.
func (e *Elections) remove(ctx context.Context) time.Duration {
	now := e.Clock()
	tried, removed := 0, 0
	for key, of := range e.entries {
		c := e.contests[of.lease].candidates[key.name]
		if of.going || !c.Expired(now) || now.Sub(c.Created()) < election.Lasts {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if tried == removedAtOnce {
			if removed > 0 {
				return e.Retry
			}
			break
		}
		tried++
		revision := strconv.FormatInt(c.Revision, 10)
		options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &revision}}
		if err := e.API.Call(ctx, electionAgent, http.MethodDelete, candidatePath(key.namespace, key.name), "application/json", options, nil); err != nil && !faster(err) {
			e.kept.Log(ctx, e.Log, slog.LevelWarn, "an expired candidate cannot be removed", "namespace", key.namespace, "name", key.name, "error", err)
			continue
		}
		removed++
	}
	return removeEvery
}
