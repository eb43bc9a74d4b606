package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// Options select the resources that Collect reads.
type Options struct {
	Dir           string // the folder of the Spool's file; "": the system's folder for temporary files
	SkipForbidden bool   // leave out, and report, resources that the user may not list
	// Want selects resources; nil: all.
	Want func(Resource) bool
	// Refuse returns the reason to leave out a wanted resource, which Collected reports; "", or a nil Refuse: it is
	// collected. defined: Collect has seen the definition of the custom resource.
	Refuse func(r Resource, defined bool) string
	// Version chooses the version to list in, among those in Served; nil or "": the one that the server
	// prefers. Custom resources are listed in their storage version.
	Version func(Resource) string
	// Progress receives the progress of the collection; may be nil.
	Progress func(Progress)
	// Count makes the collector first request a short list of each resource for the total.
	Count bool
}

// Progress is the progress of a collection.
type Progress struct {
	Resource  Resource // the present one
	Place, Of int      // its number, and the number of resources
	Objects   int64    // read so far, of all resources
	Total     int64    // the number of objects, as far as the server has counted them
	AtLeast   bool     // the server did not count all resources: there may be more than Total
}

// Skipped is a resource that was not collected.
type Skipped struct {
	Resource string `json:"resource"` // "componentstatuses", "pods.metrics.k8s.io"
	Reason   string `json:"reason"`
}

// Collected are all objects of a cluster. The caller closes it.
type Collected struct {
	*Spool
	Discovered *Discovered
	Skipped    []Skipped
	Newest     int64    // the highest resource version that was seen, of lists and of objects
	Notes      []string // harmless anomalies
}

// maxVersion is the highest resource version that is accepted: later revisions need room.
const maxVersion = 1 << 62

const (
	definitionsGroup = "apiextensions.k8s.io"
	servicesGroup    = "apiregistration.k8s.io"
)

// Collect reads all visible objects of a server, each resource at one resource version; the API has no common
// version for two resources. It omits objects with a second name, and those of aggregated servers. A resource
// that the user may not list is an error.
func (c *Client) Collect(ctx context.Context, o Options) (*Collected, error) {
	found, err := c.Discover(ctx)
	if err != nil {
		return nil, fmt.Errorf("discovering what the server serves: %w", err)
	}
	spool, err := NewSpool(o.Dir, c.cfg.Total, c.cfg.Index)
	if err != nil {
		return nil, err
	}
	k := &collector{c: c, o: o, out: &Collected{Spool: spool, Discovered: found, Skipped: []Skipped{}}, storage: map[string]string{}}
	if err := k.all(ctx); err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	return k.out, nil
}

type collector struct {
	c       *Client
	o       Options
	out     *Collected
	blind   bool              // the user may not see which versions aggregated servers serve
	storage map[string]string // of custom resources, by "widgets.example.com": the version that they are stored in
	now     Progress
}

func (k *collector) all(ctx context.Context) error {
	elsewhere, err := k.elsewhere(ctx)
	if err != nil {
		return err
	}
	if err := k.unknown(elsewhere); err != nil {
		return err
	}
	definitions, custom := k.out.Discovered.Find(definitionsGroup, "customresourcedefinitions")
	if custom {
		if err := k.definitions(ctx, definitions); err != nil {
			return err
		}
	}
	var wanted []Resource
	for _, r := range k.out.Discovered.Resources {
		if custom && r.Group == definitionsGroup && r.Name == definitions.Name {
			continue // is there already
		}
		if k.o.Want != nil && !k.o.Want(r) {
			continue
		}
		if !r.Can("list") && !r.Can("get") {
			continue // a review, which has no stored objects
		}
		if reason := k.leaveOut(r, elsewhere); reason != "" {
			k.leave(r.String(), reason)
			continue
		}
		r.Version = k.version(r)
		wanted = append(wanted, r)
	}
	if k.now.Total = k.now.Objects; k.o.Count {
		k.count(ctx, wanted)
	}
	k.now.Of = len(wanted)
	for i, r := range wanted {
		k.now.Place = i + 1
		if err := k.resource(ctx, r, nil); err != nil {
			return err
		}
	}
	k.notServed()
	return nil
}

// count requests the number of objects of each resource. Listing a resource reports why it could not be counted.
func (k *collector) count(ctx context.Context, wanted []Resource) {
	for _, r := range wanted {
		n, whole, err := k.c.Count(ctx, r)
		k.now.Total += n
		k.now.AtLeast = k.now.AtLeast || !whole
		if err != nil && !Is(err, http.StatusForbidden) && !Is(err, http.StatusNotFound) {
			k.now.AtLeast = true
			return // a server in trouble should not get more requests
		}
	}
}

func (k *collector) leave(resource, reason string) {
	k.out.Skipped = append(k.out.Skipped, Skipped{resource, reason})
}

// each is a Sink that stores nothing.
type each func(Object) error

func (each) Begin() error         { return nil }
func (f each) Put(o Object) error { return f(o) }

// resource collects one resource.
func (k *collector) resource(ctx context.Context, r Resource, learn func(Object) error) error {
	t := k.out.Open(r)
	k.now.Resource = r
	before := k.now.Objects
	t.each = func(o Object) error {
		if learn != nil {
			if err := learn(o); err != nil {
				return err
			}
		}
		if k.now.Objects++; k.o.Progress != nil {
			k.o.Progress(k.now)
		}
		return k.see(r, o.Version)
	}
	listed, err := k.c.List(ctx, r, begun{t, func() { k.now.Objects = before }})
	if Is(err, http.StatusForbidden) && k.o.SkipForbidden {
		k.leave(r.String(), "forbidden to this user")
		return nil
	}
	if Is(err, http.StatusNotFound) {
		if gone, e := k.gone(ctx, r); e != nil || gone {
			return e
		}
	}
	if err != nil {
		return k.named(r, err)
	}
	if err := k.see(r, listed.Version); err != nil {
		return err
	}
	return t.Close(listed)
}

// begun is a SectionWriter that notes when it starts again.
type begun struct {
	*SectionWriter
	again func()
}

func (b begun) Begin() error {
	b.again()
	return b.SectionWriter.Begin()
}

func (k *collector) named(r Resource, err error) error {
	if Is(err, http.StatusForbidden) {
		return fmt.Errorf("the user of the kubeconfig may not list %s (--skip-forbidden leaves it out): %w", r, err)
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", r, err)
	}
	return nil
}

// version chooses the version to list a resource in.
func (k *collector) version(r Resource) string {
	stored := k.storage[r.String()]
	if stored != "" && slices.Contains(r.Served, stored) {
		return stored
	}
	if stored != "" {
		k.out.Notes = append(k.out.Notes, fmt.Sprintf("%s are stored as %s, which is not served: they come as %s", r, Printable(stored), r.Version))
		return r.Version
	}
	if k.o.Version != nil {
		if v := k.o.Version(r); slices.Contains(r.Served, v) {
			return v
		}
	}
	return r.Version
}

// see records the resource version of a list or an object.
func (k *collector) see(r Resource, version string) error {
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil || n < 0 || n > maxVersion {
		return &MalformedError{Path: r.Path(""), What: "the resource version " + Printable(version)}
	}
	k.out.Newest = max(k.out.Newest, n)
	return nil
}
