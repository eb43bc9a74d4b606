// Package quota holds the admission plugin ResourceQuota.
//
// It promises: no write is admitted that would take the use recorded in a quota's status
// above the limits there, however many clients and servers write at once. Use is recorded
// before the object is stored, and is not taken back here if the write then fails: the
// quota controller recounts.
package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/contention"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// Store reads and writes quotas.
type Store interface {
	// List is as in admission.Objects.
	List(ctx context.Context, storage, namespace string, may func(text []byte) bool) ([]kinds.Object, error)
	// CatchUp waits until List includes the writes of all servers so far.
	CatchUp(ctx context.Context) error
	// SetStatus stores the status of a quota unless the quota has changed in the meantime.
	SetStatus(ctx context.Context, q *corev1.ResourceQuota) error
}

// patience limits the wait of a write for its namespace's quotas.
const patience = 10 * time.Second

// Plugin counts the usage of writes.
type Plugin struct {
	admission.CreatesAndUpdates
	store   Store
	limited []Limited
	meters  meters
	lanes   checkBatches
}

var _ admission.Validator = (*Plugin)(nil)

// Rules depend on the release of the server and on its feature gates.
type Rules struct {
	Whole  bool // pods may have resources for all of their containers together
	Resize bool // pods may be resized, and count as large as their nodes report until then
	Moves  bool // an update that moves an object into the scope of a quota is charged, since release 1.33
}

// New makes the plugin. Resources that limited names need a quota that covers them.
func New(store Store, limited []Limited, r Rules, now func() time.Time) *Plugin {
	return &Plugin{store: store, limited: limited, meters: meters{now: now, whole: r.Whole, resized: r.Resize, moves: r.Moves}}
}

// Name implements admission.Plugin.
func (*Plugin) Name() string { return "ResourceQuota" }

// Validate implements admission.Validator.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Namespace == "" || !a.Resource.Namespaced || a.Remembered(p.Name()) != nil {
		return nil
	}
	m := p.meters.meter(a.Resource.GroupResource())
	if m == nil || !m.handles(a) {
		return nil
	}
	quotas, err := p.quotas(ctx, a.Namespace)
	if err != nil {
		return err
	}
	if len(quotas) == 0 && len(p.limited) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	err = p.lanes.run(ctx, a.Namespace, &queuedCheck{a: a, meter: m}, p.settle)
	if err != nil && errors.Is(context.Cause(ctx), errPatience) && errors.Is(err, context.DeadlineExceeded) {
		return apierrors.NewInternalError(errPatience)
	}
	if err == nil && a.Operation == admission.Create {
		a.Remember(p.Name(), true) // a create that is tried again, under another name or with other addresses, uses the same
	}
	return err
}

var errPatience = errors.New("resource quota evaluation timed out")

func (p *Plugin) quotas(ctx context.Context, namespace string) ([]*corev1.ResourceQuota, error) {
	list, err := admission.ListAll(ctx, p.store, "resourcequotas", namespace, nil)
	if err != nil {
		return nil, fmt.Errorf("error resolving quota: %w", err)
	}
	quotas := make([]*corev1.ResourceQuota, 0, len(list))
	for _, o := range list {
		if q, ok := o.(*corev1.ResourceQuota); ok {
			quotas = append(quotas, q)
		}
	}
	return quotas, nil
}

// settle completes the asks of a namespace together, so that many concurrent writes cost one change of each quota.
func (p *Plugin) settle(ctx context.Context, namespace string, asks []*queuedCheck) {
	// The end of one request, or of a controller's lead, must not cancel a write for which others wait.
	ctx, cancel := context.WithTimeout(sqlstore.WithLead(context.WithoutCancel(ctx), ""), patience)
	defer cancel()
	var only []string // quotas that are left to change; nil: all
	for try := 1; ; try++ {
		quotas, err := p.quotas(ctx, namespace)
		if err != nil {
			answer(asks, err)
			return
		}
		if only != nil {
			quotas = slices.DeleteFunc(quotas, func(q *corev1.ResourceQuota) bool { return !slices.Contains(only, q.Name) })
		}
		left, running := p.weigh(quotas, asks, only != nil)
		if asks = left; len(asks) == 0 {
			return
		}
		if only, err = p.record(ctx, quotas, running); err == nil {
			answer(asks, nil)
			return
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			answer(asks, err)
			return
		}
		// Another server, or the quota controller, was faster: try again as often as it takes.
		if err := contention.Backoff(ctx, try); err != nil {
			answer(asks, apierrors.NewInternalError(errPatience))
			return
		}
		if err := p.store.CatchUp(ctx); err != nil {
			answer(asks, err)
			return
		}
	}
}

// weigh completes the asks that need no change of a quota, and returns the others with the new quotas. covered: limited
// resources were checked.
func (p *Plugin) weigh(quotas []*corev1.ResourceQuota, asks []*queuedCheck, covered bool) ([]*queuedCheck, []*corev1.ResourceQuota) {
	var left []*queuedCheck
	for _, k := range asks {
		next, err := p.charge(quotas, k, covered)
		switch {
		case err != nil:
			k.err = err
		case !k.a.DryRun && !unchanged(quotas, next):
			left, quotas = append(left, k), next
		}
	}
	return left, quotas
}

// record stores the quotas that changed. It names those that could not be, with the
// error of the last.
func (p *Plugin) record(ctx context.Context, before, after []*corev1.ResourceQuota) (failed []string, err error) {
	for i, q := range after {
		if equal(before[i].Status.Used, q.Status.Used) {
			continue
		}
		if e := p.store.SetStatus(ctx, q); e != nil {
			failed, err = append(failed, q.Name), e
		}
	}
	return failed, err
}

func answer(asks []*queuedCheck, err error) {
	for _, k := range asks {
		k.err = err
	}
}

func unchanged(before, after []*corev1.ResourceQuota) bool {
	for i := range after {
		if before[i] != after[i] && !equal(before[i].Status.Used, after[i].Status.Used) {
			return false
		}
	}
	return true
}

// refuse returns the refusal of a write, with the reason in front of it.
func refuse(a *admission.Attributes, format string, args ...any) error {
	return a.Forbid(fmt.Errorf(format, args...))
}

func joined(names []corev1.ResourceName) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}
