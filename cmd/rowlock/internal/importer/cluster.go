package importer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/server/transfer"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// clusterFlags are the flags of an import from a live cluster.
type clusterFlags struct {
	remote.Flags
	kubeconfig, context string
	skipForbidden       bool
}

func (o *clusterFlags) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "from-cluster", "", "kubeconfig of a live cluster to read through its API, instead of SOURCE")
	f.StringVar(&o.context, "from-context", "", "context of --from-cluster (default: the current one)")
	f.BoolVar(&o.skipForbidden, "skip-forbidden", false, "skip, and report, resources that the user of --from-cluster may not list")
	o.AddTo(f)
}

// validate refuses flags that have no effect for the source.
func (o *clusterFlags) validate(changed func(flag string) bool) error {
	if o.kubeconfig == "" {
		for _, flag := range []string{"from-context", "skip-forbidden", "qps", "burst", "page-size", "max-wait"} {
			if changed(flag) {
				return fmt.Errorf("--%s is about a live cluster, and --from-cluster is not given", flag)
			}
		}
		return nil
	}
	for _, flag := range []string{"prefix", database.EncryptionFlag, unhashedFlag, "etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-user", "etcd-password-file"} {
		if changed(flag) {
			return fmt.Errorf("--%s: an API server shows neither keys nor how it keeps values; it does not go with --from-cluster", flag)
		}
	}
	return nil
}

// clusterSource is a live cluster, read at one version of each resource. It is a foreign.Source that holds the
// keys of all objects in memory while entries are read.
type clusterSource struct {
	*remote.Collected
	host string
	keys *transfer.Writer
}

var _ foreign.Counter = (*clusterSource)(nil)

// openCluster reads everything that a live cluster shows into an unnamed file.
func (o *importOptions) openCluster(ctx context.Context) (*clusterSource, error) {
	c, err := o.live.Client("--from-cluster", o.live.kubeconfig, o.live.context)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s := &clusterSource{host: c.Host(), keys: transfer.NewWriter("")}
	dir := ""
	if o.spool != "" {
		dir = filepath.Dir(o.spool)
	}
	p, show := remote.ShowProgress(o.ErrOut, c.Host())
	s.Collected, err = c.Collect(ctx, remote.Options{
		Dir: dir, SkipForbidden: o.live.skipForbidden, Refuse: s.refuse, Version: s.version,
		Count: true, Progress: show,
	})
	p.End()
	if err != nil {
		return nil, fmt.Errorf("--from-cluster: %w", err)
	}
	return s, nil
}

// Count returns the number of collected objects.
func (s *clusterSource) Count(context.Context) (int64, error) {
	n := int64(0)
	for _, section := range s.Sections() {
		n += section.Listed.Objects
	}
	return n, nil
}

// refuse returns the reason why objects of a resource cannot be imported; "" if they can. The import includes the
// definition of a custom resource, unless a built-in resource has its name.
func (s *clusterSource) refuse(r remote.Resource, defined bool) string {
	_, version, known := s.keys.Stored(r.Group, r.Name, r.Served)
	switch {
	case known && version == "":
		return "it is served in none of the versions that are known here"
	case !known && !defined:
		return "it is not served here, and has no definition"
	}
	return ""
}

func (s *clusterSource) version(r remote.Resource) string {
	_, version, _ := s.keys.Stored(r.Group, r.Name, r.Served)
	return version
}

// Describe returns the address of the cluster.
func (s *clusterSource) Describe() string { return "live cluster " + s.host }

// Revision returns the highest resource version that was read.
func (s *clusterSource) Revision() int64 { return s.Newest }

// Entries returns the objects under the keys that a stock server would use.
func (s *clusterSource) Entries(ctx context.Context) iter.Seq2[foreign.Entry, error] {
	return func(yield func(foreign.Entry, error) bool) {
		for o, err := range s.Ordered(s.key) {
			var e foreign.Entry
			if err = errors.Join(err, ctx.Err()); err == nil {
				e, err = s.entry(o)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (s *clusterSource) key(o remote.Object) (string, error) {
	resource := o.Resource.String()
	if stored, _, ok := s.keys.Stored(o.Resource.Group, o.Resource.Name, o.Resource.Served); ok {
		resource = stored
	}
	return s.keys.Key(sqlstore.Key{Resource: resource, Namespace: o.Namespace, Name: o.Name})
}

func (s *clusterSource) entry(o remote.Object) (foreign.Entry, error) {
	key, err := s.key(o)
	if err != nil {
		return foreign.Entry{}, err
	}
	revision, err := strconv.ParseInt(o.Version, 10, 64)
	if err != nil {
		return foreign.Entry{}, &foreign.KeyError{Key: key, Why: "has no resource version that is a number"}
	}
	return foreign.Entry{Key: key, Value: o.JSON, ModRevision: revision}, nil
}
