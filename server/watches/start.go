package watches

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/wire"
	"github.com/rowlock/rowlock/sqlstore"
)

// start finds where the watch begins. A request that is good, but names a revision that
// is gone or does not come, begins a watch that fails.
func (w *stream) start(ctx context.Context) error {
	o, store, permit := w.options, w.server.Objects, w.request.Scope.Permit
	revision, err := o.Revision(false)
	if err != nil {
		return err
	}
	at := objects.Place{Resource: w.request.Resource, Namespace: o.Namespace, Name: o.Name}
	scope := cache.Scope{Filter: o.Filter}
	if conn := wire.From(ctx); conn != nil && w.request.R.ProtoMajor == 2 {
		scope.Group, w.conn = conn, conn
	}
	if revision > 0 && !o.InitialEvents() {
		w.watcher, err = store.Watch(permit, at, scope, revision)
		var gone *sqlstore.CompactedError
		if errors.As(err, &gone) {
			w.failed, err = err, nil
		}
		return err
	}
	switch {
	case revision > 0:
		if err = store.Reach(ctx, revision); apierrors.IsTimeout(err) {
			w.failed, err = err, nil
			return nil
		}
	case o.ResourceVersion == "":
		err = store.CatchUp(ctx)
	}
	if err != nil {
		return err
	}
	w.watcher, w.there, err = store.WatchNow(permit, at, scope)
	return err
}

// duration is how long the watch lasts.
func (w *stream) duration() time.Duration {
	if seconds := w.options.TimeoutSeconds; seconds != nil && *seconds != 0 {
		return time.Duration(max(0, min(*seconds, 1<<31))) * time.Second
	}
	usual := w.server.For
	if usual <= 0 {
		usual = usualDuration
	}
	return time.Duration(float64(usual) * (1 + rand.Float64()))
}
