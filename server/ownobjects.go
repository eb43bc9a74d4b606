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

// ownObjects writes the objects that every cluster has, and knows which of them are
// lacking because some objects cannot be read. That does not keep a server from
// starting: who is to mend it needs the server.
type ownObjects struct {
	cfg   *Config
	api   access.API
	cache *cache.Cache

	unchecked atomic.Pointer[error] // why the table could not be compared with its indexes

	mu      sync.Mutex
	own     map[sqlstore.Key]bool // the objects that every cluster has
	failing []string              // those that could not be written in the pass under way
	missing []string              // those that could not be written in the last pass
	told    map[string]bool       // those that were logged since all were there
	remind  reminder
}

// mostLogged bounds the lines about objects that cannot be read, for each load and for
// all that the feed brings: the check and the metric have the number.
const mostLogged = 20

// defaultPolicy stands for all roles and bindings that every cluster has.
const defaultPolicy = "the default policy"

// healEvery is how often a server tries again to write the cluster's own objects,
// after some could not be; after a start sooner at first.
const healEvery = 10 * time.Second

// standing finds one of the cluster's own objects, and remembers that it is one.
func (o *ownObjects) standing(storage, namespace, name string) *cache.Item {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.own == nil {
		o.own = map[sqlstore.Key]bool{}
	}
	o.own[sqlstore.Key{Resource: storage, Namespace: namespace, Name: name}] = true
	return o.cache.Get(storage, namespace, name)
}

// forgive takes the error of a step of the start that failed because an object cannot
// be read, or cannot be encrypted while its key is away; any other it returns.
func (o *ownObjects) forgive(what string, err error) error {
	if err == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case apierrors.IsInternalError(err) && (len(o.cache.Corrupt()) > 0 || o.keyAway(err)):
	case apierrors.IsNotFound(err) && len(o.failing) > 0: // it lies in a namespace that could not be written
	default:
		return err
	}
	if !slices.Contains(o.failing, what) {
		o.failing = append(o.failing, what)
	}
	if !o.told[what] {
		if o.told == nil {
			o.told = map[string]bool{}
		}
		if o.told[what] = true; len(o.told) <= mostLogged {
			o.cfg.Log.Error("one of the cluster's own objects cannot be written while others cannot be read, or keys are away", "object", what, "error", err)
		}
	}
	return nil
}

// ensure is bootstrap, and remembers what could not be written.
func (o *ownObjects) ensure(ctx context.Context) error {
	o.mu.Lock()
	o.failing = nil
	o.mu.Unlock()
	err := o.bootstrap(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil || len(o.failing) > 0 { // else it ended before it had tried
		slices.Sort(o.failing)
		o.missing = o.failing
	}
	return err
}

// startFor is how long a start waits for a database that is away or busy, as it is where several
// servers start on it at once and the machine has other work: longer than a write is tried.
const startFor = 30 * time.Second

// begin is ensure for a start. over is closed when a loop that it needs has failed: then no store comes back.
// In a cluster that there is, a store that takes no writes does not keep the server from serving reads: what could not be
// written is tried again by heal.
func (o *ownObjects) begin(ctx context.Context, over <-chan struct{}) error {
	err := patiently(ctx, over, o.ensure, o.refuses)
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

// refuses says why the store takes no writes where waiting for it is of no use.
func (o *ownObjects) refuses() error {
	err := o.cfg.Store.Writable()
	switch sqlstore.KindOf(err) {
	case sqlstore.KindBusy, sqlstore.KindUnavailable, sqlstore.KindUncertain:
		return nil
	}
	return err
}

// patiently tries again for a while what fails because the store is away. One that refuses
// writes, as it is full or read-only, is not waited for.
func patiently(ctx context.Context, over <-chan struct{}, try func(context.Context) error, writable func() error) error {
	for end := time.Now().Add(startFor); ; {
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

// keyAway says whether an answer tells of a value that could not be encrypted for now. An
// answer has no more than the words of its cause.
func (o *ownObjects) keyAway(err error) bool {
	return o.cfg.Store.Sealed() && strings.Contains(err.Error(), sqlstore.ErrKeyUnavailable.Error())
}

// sayCorrupt logs what cannot be read of all that was loaded.
func (o *ownObjects) sayCorrupt() {
	list := o.cache.Corrupt()
	for i, c := range list {
		if i == mostLogged {
			o.cfg.Log.Error("more objects in the store cannot be read; `rowlock store repair --list` names them all", "count", len(list)-i)
			return
		}
		o.cfg.Log.Error("an object in the store cannot be read", "key", c.Key, "revision", c.Revision, "error", c.Reason)
	}
}

// NewCache makes the memory of a server, whose objects are read and written by codec. Objects that another writer has put into the
// store, and that cannot be read, it logs.
func NewCache(catalogue *kinds.Catalogue, codec json.Codec, log *slog.Logger) *cache.Cache {
	var logged atomic.Int64
	return cache.NewWith(catalogue, cache.Config{JSON: codec, Corrupt: func(key sqlstore.Key, item *cache.Item) {
		if logged.Add(1) <= mostLogged {
			log.Error("an object that came into the store cannot be read", "key", key, "revision", item.Revision, "error", item.Corrupt)
		}
	}})
}

// lacking names the cluster's own objects that cannot be read, and those that are missing
// because of others.
func (o *ownObjects) lacking(list []cache.CorruptItem) (unread, missing []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range list {
		if o.own[c.Key] {
			unread = append(unread, c.Key.String())
		}
	}
	return unread, o.missing
}

// probeObjects tells of objects that cannot be read. To all who may read the check of
// the whole server it tells their number, and the names of those that every cluster
// has; the others to those who may read the single check.
func (o *ownObjects) probeObjects(context.Context) error {
	list := o.cache.Corrupt()
	unread, missing := o.lacking(list)
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

// heal writes the cluster's own objects again, for as long as some of them cannot be
// read or were not written, and for as long as it takes after they were mended. The log
// gets the list of missing objects at growing intervals. Those of keep it makes again when they were deleted.
func (o *ownObjects) heal(ctx context.Context) error {
	wait, ill := healEvery, o.isIll()
	if ill {
		wait = time.Second
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = min(2*wait, healEvery)
		var err error
		if !ill && !o.isIll() {
			if err = o.keep(ctx); err == nil && !o.isIll() {
				continue
			}
		} else if err = o.locked(ctx); err == nil {
			err = o.ensure(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		ill = err != nil || o.isIll()
		o.tell(ill, err)
	}
}

// locked says why no pass is made: the encryption key of the missing objects is not available, so that each write
// would be refused, with a line in the log.
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

// tell says how the cluster's own objects are after a look at them.
func (o *ownObjects) tell(ill bool, err error) {
	unread, missing := o.lacking(o.cache.Corrupt())
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !ill:
		o.cfg.Log.Info("the cluster's own objects are all there")
		o.told, o.remind = nil, reminder{}
	case o.remind.due(o.cfg.Clock()):
		o.cfg.Log.Warn("the cluster's own objects are not all there yet; that is tried again", "unread", len(unread), "unwritten", len(missing), "error", err)
	}
}

// reminder spaces out repeated messages: the second comes a minute after the
// first, and each space is twice the one before, up to an hour.
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

func (o *ownObjects) isIll() bool {
	unread, missing := o.lacking(o.cache.Corrupt())
	return len(unread)+len(missing) > 0
}
