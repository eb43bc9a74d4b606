// Package copying writes objects into another cluster through its API.
//
// It copies namespaces first, then definitions of custom resources, and waits until they are served; then everything
// else, owners before their dependents, so that references get the UIDs of the new cluster. It copies quotas, policies,
// webhooks and APIServices last, as they could refuse later writes.
//
// Each object is read first and written by server-side apply with a field manager of its own. An object that exists
// and is not different is left alone, so that a second run continues the first. Fields that other managers own with
// other values are conflicts, which are reported and only forced with --overwrite.
//
// Neither side is trusted. Memory holds a bit for each object, some 100 bytes for each of at most 4,000,000 owners, the
// report, and the objects that are being written: as many as there are workers, and at most 32 MiB or one object, with
// the same amount of the target's answers. Package remote bounds the answers. Owners more than 100 deep are not waited
// for. Run starts its workers and waits for them.
package copying

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
)

// Manager is the field manager of copied objects.
const Manager = "rowlock-copy"

// Source has the objects that are copied.
type Source interface {
	// Resources are all of which there may be objects: "pods", "deployments.apps".
	Resources() []string
	// Objects returns the objects of a resource as JSON, with kind and version in them, in the same
	// order each time. Each is valid until the next.
	Objects(ctx context.Context, resource string) iter.Seq2[[]byte, error]
}

// Options select the objects that Run copies, and configure how.
type Options struct {
	Namespaces []string        // objects in these, and these themselves; none: everything
	Selector   labels.Selector // nil: everything
	Resources  []string        // "pods", "deployments.apps", "*.example.com"; none: everything
	Exclude    []string        // likewise
	Overwrite  bool            // take fields from others that own them
	WithStatus bool            // write the status, too
	Events     bool            // copy events, too
	DryRun     bool            // the server decides everything and keeps nothing
	Workers    int             // objects that are written at a time; 8
	Served     time.Duration   // how long a definition may take until it is served; 1m
	// Convert gives a built-in object in another of its versions; nil: they are written as
	// they are.
	Convert func(ctx context.Context, object map[string]any, group, version string) (map[string]any, error)
	// Progress receives the number of finished objects; may be nil.
	Progress func(objects int64)
}

// Run copies. It returns the report also with an error, which concerns the connection or the source and not an
// object.
func Run(ctx context.Context, to *remote.Client, from Source, o Options) (*Report, error) {
	c := &copier{
		to: to, from: from, o: o, report: newReport(o.DryRun), done: map[string]*bits{}, planned: map[string]bool{},
		owners: map[ownerKey]*owner{}, mostOwners: maxOwners,
		weight: semaphore.NewWeighted(maxUnderWay), looking: semaphore.NewWeighted(maxUnderWay),
	}
	if c.o.Workers <= 0 {
		c.o.Workers = 8
	}
	if c.o.Served <= 0 {
		c.o.Served = time.Minute
	}
	err := c.run(ctx)
	c.report.finish()
	return c.report, err
}

// copier is one run. mu guards the fields that workers share.
type copier struct {
	to         *remote.Client
	from       Source
	o          Options
	target     *remote.Discovered
	report     *Report
	mostOwners int
	weight     *semaphore.Weighted // of objects under way, in bytes
	looking    *semaphore.Weighted // of answers of the target that are taken apart, in bytes
	done       map[string]*bits    // which objects of a resource are finished, by their place in it

	mu      sync.Mutex
	owners  map[ownerKey]*owner // by their UID in the source
	planned map[string]bool     // in a dry run, objects that would exist: "namespaces/a", "widgets.example.com"
	written int64
}

const (
	// maxUnderWay bounds the bytes of the objects that are read and not yet written. A larger one is
	// processed alone. Decoded they have up to 30 times as many.
	maxUnderWay = 32 << 20
	// maxWaves bounds the passes over objects that wait for their owners: deeper owners do not occur.
	maxWaves = 100
)

func (c *copier) run(ctx context.Context) (err error) {
	if c.target, err = c.to.Discover(ctx); err != nil {
		return fmt.Errorf("discovering what the target serves: %w", err)
	}
	if err := c.survey(ctx); err != nil {
		return err
	}
	stages := arrange(c.from.Resources())
	for _, stage := range stages {
		if err := c.stage(ctx, stage); err != nil {
			return err
		}
	}
	return nil
}

// stage copies a stage in waves: each wave copies the objects whose owners the wave before has copied.
func (c *copier) stage(ctx context.Context, s stage) error {
	for wave := 0; ; wave++ {
		waiting, progress := int64(0), int64(0)
		for _, rank := range s.ranks {
			w, p, err := c.rank(ctx, rank, wave)
			if err != nil {
				return err
			}
			waiting, progress = waiting+w, progress+p
		}
		if waiting == 0 {
			break
		}
		switch {
		case progress == 0:
			c.unreachable("is not in the target, or comes later")
		case wave >= maxWaves:
			c.unreachable(fmt.Sprintf("has owners of its own, more than %d deep", maxWaves))
		}
	}
	if s.definitions {
		return c.serve(ctx)
	}
	return nil
}

// rank copies the objects of some resources that are ready. It returns how many objects wait for their owners, and
// how many are done.
func (c *copier) rank(ctx context.Context, resources []string, wave int) (waiting, progress int64, err error) {
	work := make(chan *task)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for range c.o.Workers {
		wg.Go(func() {
			for t := range work {
				if err := c.perform(ctx, t); err != nil {
					cancel(err)
				}
				c.weight.Release(t.weight)
			}
		})
	}
	for _, resource := range resources {
		var w, p int64
		if w, p, err = c.resource(ctx, resource, wave, work); err != nil {
			break
		}
		waiting, progress = waiting+w, progress+p
	}
	close(work)
	wg.Wait()
	if cause := context.Cause(ctx); err == nil || ctx.Err() != nil {
		err = cause
	}
	return waiting, progress, err
}

// resource passes the objects of a resource that are ready to the workers.
func (c *copier) resource(ctx context.Context, resource string, wave int, work chan<- *task) (waiting, progress int64, err error) {
	finished := c.done[resource]
	place := -1
	for data, err := range c.from.Objects(ctx, resource) {
		if err != nil {
			return waiting, progress, fmt.Errorf("reading %s of the source: %w", resource, err)
		}
		if place++; finished.has(place) {
			continue
		}
		weight := min(int64(len(data)), maxUnderWay)
		if err := c.weight.Acquire(ctx, weight); err != nil {
			return waiting, progress, context.Cause(ctx)
		}
		t, err := c.take(ctx, resource, data, wave)
		if err != nil {
			return waiting, progress, err
		}
		if t.state == waits {
			waiting++
		} else {
			finished.set(place)
		}
		if t.state != goes {
			c.weight.Release(weight)
			continue
		}
		t.weight = weight
		progress++
		select {
		case work <- t:
		case <-ctx.Done():
			return waiting, progress, context.Cause(ctx)
		}
	}
	return waiting, progress, nil
}

// take decides whether to copy, delay or skip an object, and reports skipped ones.
func (c *copier) take(ctx context.Context, resource string, data []byte, wave int) (*task, error) {
	t, err := newTask(resource, data)
	if err != nil {
		if c.o.Picks(resource) {
			c.report.add(t, Failed, err.Error())
		}
		return t, nil
	}
	if wave == 0 && !c.wanted(t) {
		return t, nil
	}
	ready, err := c.ready(ctx, t)
	switch {
	case err != nil:
		return t, err
	case ready:
		t.state = goes
	default:
		t.state = waits
	}
	return t, nil
}

// bits is a set of small numbers.
type bits []uint64

func (b *bits) has(i int) bool { return i/64 < len(*b) && (*b)[i/64]&(1<<(i%64)) != 0 }

func (b *bits) set(i int) {
	for len(*b) <= i/64 {
		*b = append(*b, 0)
	}
	(*b)[i/64] |= 1 << (i % 64)
}
