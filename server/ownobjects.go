package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/health"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// ownObjects writes the objects that every cluster has, and tracks which of them are missing because objects
// are unreadable. The server starts nevertheless: operators need it to repair them.
type ownObjects struct {
	cfg   *Config
	api   access.API
	cache *cache.Cache

	unchecked atomic.Pointer[error] // why comparing the table with its indexes failed

	mu      sync.Mutex
	own     map[sqlstore.Key]bool // objects that every cluster has
	failing []string              // not written by the current pass
	missing []string              // not written by the last pass
	logged  map[string]bool       // logged since the last time that none were missing
	remind  reminder
}

// maxLogged limits log lines about unreadable objects, for each load and for the whole feed; the health
// check and the metric show their number.
const maxLogged = 20

// defaultPolicy represents all default roles and bindings.
const defaultPolicy = "the default policy"

// healEvery is the interval between attempts to write the default objects after a failure; the first attempts after
// a start follow sooner.
const healEvery = 10 * time.Second

// find reads a default object, and records its key.
func (o *ownObjects) find(storage, namespace, name string) *cache.Item {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.own == nil {
		o.own = map[sqlstore.Key]bool{}
	}
	o.own[sqlstore.Key{Resource: storage, Namespace: namespace, Name: name}] = true
	return o.cache.Get(storage, namespace, name)
}

// tolerate suppresses an error of a step of the start if the reason is an unreadable object, or an encryption
// key that is not available.
func (o *ownObjects) tolerate(what string, err error) error {
	if err == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case apierrors.IsInternalError(err) && (len(o.cache.Corrupt()) > 0 || o.keyUnavailable(err)):
	case apierrors.IsNotFound(err) && len(o.failing) > 0: // its namespace could not be written
	default:
		return err
	}
	if !slices.Contains(o.failing, what) {
		o.failing = append(o.failing, what)
	}
	if !o.logged[what] {
		if o.logged == nil {
			o.logged = map[string]bool{}
		}
		if o.logged[what] = true; len(o.logged) <= maxLogged {
			o.cfg.Log.Error("one of the cluster's own objects cannot be written while others cannot be read, or keys are unavailable", "object", what, "error", err)
		}
	}
	return nil
}

// ensure is bootstrap, and records the objects that could not be written.
func (o *ownObjects) ensure(ctx context.Context) error {
	o.mu.Lock()
	o.failing = nil
	o.mu.Unlock()
	err := o.bootstrap(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil || len(o.failing) > 0 { // otherwise bootstrap ended early
		slices.Sort(o.failing)
		o.missing = o.failing
	}
	return err
}

// startTimeout bounds how long a start waits for a database that is unavailable or busy, such as when several
// servers start on it at once. It is longer than the timeout of a write.
const startTimeout = 30 * time.Second

// begin is ensure for a start. over is closed when a loop that it needs has failed, because the store will
// not return then. In an existing cluster, a store that refuses writes does not keep the server from serving
// reads: heal retries the writes.
func (o *ownObjects) begin(ctx context.Context, over <-chan struct{}) error {
	err := retryWrites(ctx, over, o.ensure, o.refuses)
	if err == nil || ctx.Err() != nil || !apierrors.IsServiceUnavailable(err) && !apierrors.IsTimeout(err) || o.cache.Get("namespaces", "", metav1.NamespaceDefault) == nil {
		return err
	}
	select {
	case <-over:
		return err
	default:
	}
	o.cfg.Log.Error("the cluster's own objects could not be brought up to date at the start, as the store takes no writes; the server serves what there is and tries again", "error", err)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.missing = append(o.failing, "what the start left out")
	return nil
}

// refuses returns the reason why the store refuses writes, if waiting does not help.
func (o *ownObjects) refuses() error {
	err := o.cfg.Store.Writable()
	switch sqlstore.KindOf(err) {
	case sqlstore.KindBusy, sqlstore.KindUnavailable, sqlstore.KindUncertain:
		return nil
	}
	return err
}

// retryWrites repeats try for a while if the store is unavailable. It does not wait for a store that refuses
// writes because it is full or read-only.
func retryWrites(ctx context.Context, over <-chan struct{}, try func(context.Context) error, writable func() error) error {
	for end := time.Now().Add(startTimeout); ; {
		err := try(ctx)
		if !apierrors.IsServiceUnavailable(err) || writable() != nil || !time.Now().Before(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-over:
			return err
		case <-time.After(time.Second):
		}
	}
}

// keyUnavailable reports whether an answer means that the encryption key is unavailable. The answer has only the text
// of its cause.
func (o *ownObjects) keyUnavailable(err error) bool {
	return o.cfg.Store.Sealed() && strings.Contains(err.Error(), sqlstore.ErrKeyUnavailable.Error())
}

// logCorrupt logs the unreadable objects of a load.
func (o *ownObjects) logCorrupt() {
	list := o.cache.Corrupt()
	for i, c := range list {
		if i == maxLogged {
			o.cfg.Log.Error("more objects in the store cannot be read; `rowlock store repair --list` names them all", "count", len(list)-i)
			return
		}
		o.cfg.Log.Error("an object in the store cannot be read", "key", c.Key, "revision", c.Revision, "error", c.Reason)
	}
}

// NewCache makes the cache of a server; codec encodes and decodes its objects. It logs unreadable objects
// that arrive from other writers.
func NewCache(catalogue *kinds.Catalogue, codec json.Codec, log *slog.Logger) *cache.Cache {
	var logged atomic.Int64
	return cache.NewWith(catalogue, cache.Config{JSON: codec, Corrupt: func(key sqlstore.Key, item *cache.Item) {
		if logged.Add(1) <= maxLogged {
			log.Error("an object that was added to the store cannot be read", "key", key, "revision", item.Revision, "error", item.Err())
		}
	}})
}

// missingObjects names the default objects that are unreadable, and those that are missing because of others.
func (o *ownObjects) missingObjects(list []cache.CorruptItem) (unread, missing []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range list {
		if o.own[c.Key] {
			unread = append(unread, c.Key.String())
		}
	}
	return unread, o.missing
}

// probeObjects reports unreadable objects: to every client that may read the combined check, their number and
// the names of the cluster's own objects; the other names to clients that may read this single check.
func (o *ownObjects) probeObjects(context.Context) error {
	list := o.cache.Corrupt()
	unread, missing := o.missingObjects(list)
	unchecked := o.unchecked.Load()
	if len(list) == 0 && len(missing) == 0 && unchecked == nil {
		return nil
	}
	shown := fmt.Sprintf("%d objects cannot be read", len(list))
	if unchecked != nil {
		shown += "; the table could not be compared with its indexes, run `rowlock store verify`"
	}
	if len(unread) > 0 {
		shown += ", of the cluster's own: " + strings.Join(unread, ", ")
	}
	if len(missing) > 0 {
		shown += "; cannot be written: " + strings.Join(missing, ", ")
	}
	var all []string
	if unchecked != nil {
		all = append(all, (*unchecked).Error())
	}
	for i, c := range list {
		if i == 100 {
			all = append(all, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		all = append(all, fmt.Sprintf("%s at revision %d: %v", c.Key, c.Revision, c.Reason))
	}
	return &health.Remark{Shown: shown, Err: errors.New(shown + "\n" + strings.Join(all, "\n"))}
}

// heal retries writing the cluster's own objects while some of them are unreadable or unwritten, until all
// exist. It logs the list of missing objects at growing intervals. keep restores deleted objects.
func (o *ownObjects) heal(ctx context.Context) error {
	wait, ill := healEvery, o.isIncomplete()
	if ill {
		wait = time.Second
	}
	for {
		if !sqlstore.Sleep(ctx, wait) {
			return nil
		}
		wait = min(2*wait, healEvery)
		var err error
		if !ill && !o.isIncomplete() {
			if err = o.keep(ctx); err == nil && !o.isIncomplete() {
				continue
			}
		} else if err = o.locked(ctx); err == nil {
			err = o.ensure(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		ill = err != nil || o.isIncomplete()
		o.logState(ill, err)
	}
}

// locked returns why no pass is made: the encryption key of the missing objects is not available, so each
// write would fail and be logged.
func (o *ownObjects) locked(ctx context.Context) error {
	o.mu.Lock()
	missing := o.missing
	o.mu.Unlock()
	for _, what := range missing {
		resource, name, ok := strings.Cut(what, "/")
		key := sqlstore.Key{Resource: resource, Name: name}
		if what == defaultPolicy {
			key, ok = o.cfg.Policy.Keys()[0], true
		}
		if !ok {
			continue
		}
		if err := o.cfg.Store.Sealable(ctx, key); errors.Is(err, sqlstore.ErrKeyUnavailable) {
			return err
		}
		break
	}
	return nil
}

// logState logs the state of the default objects after a pass.
func (o *ownObjects) logState(ill bool, err error) {
	unread, missing := o.missingObjects(o.cache.Corrupt())
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !ill:
		o.cfg.Log.Info("all default objects exist")
		o.logged, o.remind = nil, reminder{}
	case o.remind.due(o.cfg.Clock()):
		o.cfg.Log.Warn("some default objects are missing; trying again", "unread", len(unread), "unwritten", len(missing), "error", err)
	}
}

// reminder spaces repeated messages: the second follows after a minute, and each interval is twice the
// previous one, up to an hour.
type reminder struct {
	next  time.Time
	space time.Duration
}

func (r *reminder) due(now time.Time) bool {
	if now.Before(r.next) {
		return false
	}
	r.space = min(max(2*r.space, time.Minute), time.Hour)
	r.next = now.Add(r.space)
	return true
}

func (o *ownObjects) isIncomplete() bool {
	unread, missing := o.missingObjects(o.cache.Corrupt())
	return len(unread)+len(missing) > 0
}
