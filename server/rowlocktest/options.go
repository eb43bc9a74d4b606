package rowlocktest

import (
	"slices"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/server/embed"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

// Option configures Start.
type Option func(*options)

type options struct {
	past        bool
	embed       embed.Options
	kinds       []embed.Kind
	folders     []string
	definitions []*apiextensionsv1.CustomResourceDefinition
}

// CRDs makes the server serve the CustomResourceDefinitions in files and in folders, recursively: *.yaml,
// *.yml and *.json. Other files are ignored.
func CRDs(paths ...string) Option {
	return func(o *options) { o.folders = append(o.folders, paths...) }
}

// Definitions adds CustomResourceDefinitions to the server.
func Definitions(list ...*apiextensionsv1.CustomResourceDefinition) Option {
	return func(o *options) { o.definitions = append(o.definitions, list...) }
}

// Kinds makes the server serve kinds with the schemas of Go types.
func Kinds(list ...embed.Kind) Option {
	return func(o *options) { o.kinds = append(o.kinds, list...) }
}

// Controllers runs controllers of the server, by the names of --controllers: "garbagecollector", "namespace",
// or "*" for all that are on by default. Without this option none runs, as with a stock server in envtest.
func Controllers(names ...string) Option {
	return func(o *options) { o.embed.Controllers = append(o.embed.Controllers, names...) }
}

// Release has the server behave as a Kubernetes release, "1.33"; without this option it is 1.32.
func Release(version string) Option { return func(o *options) { o.embed.Release = version } }

// FeatureGates and RuntimeConfig are as the flags of these names.
func FeatureGates(pairs ...string) Option {
	return func(o *options) { o.embed.FeatureGates = append(o.embed.FeatureGates, pairs...) }
}

// RuntimeConfig turns APIs on and off: KEY=true, KEY=false.
func RuntimeConfig(pairs ...string) Option {
	return func(o *options) { o.embed.RuntimeConfig = append(o.embed.RuntimeConfig, pairs...) }
}

// MaxObjectBytes returns the size of the largest object, as JSON: 1.5 MiB, the default, to 32 MiB.
func MaxObjectBytes(n int64) Option { return func(o *options) { o.embed.MaxObjectBytes = n } }

// Past serves the group history.rowlock.dev, as the binary does by default.
func Past() Option { return func(o *options) { o.past = true } }

// Retention returns how long past versions of objects are kept, by the server's Clock. The default is a year, so
// that histories are complete.
func Retention(d time.Duration) Option { return func(o *options) { o.embed.Retention = d } }

// Admission adds rules about writes.
func Admission(list ...embed.Admission) Option {
	return func(o *options) { o.embed.Admission = append(o.embed.Admission, list...) }
}

// DisableAdmission turns admission plugins of the release off. The plugin ServiceAccount is
// off without this option, as no controller creates the accounts that pods would need.
func DisableAdmission(names ...string) Option {
	return func(o *options) { o.embed.DisableAdmission = append(o.embed.DisableAdmission, names...) }
}

// EnableAdmission turns admission plugins of the release on.
func EnableAdmission(names ...string) Option {
	return func(o *options) { o.embed.EnableAdmission = append(o.embed.EnableAdmission, names...) }
}

const year = 365 * 24 * time.Hour

func collect(list []Option) options {
	o := options{embed: embed.Options{Retention: year, Controllers: []string{}}}
	for _, set := range list {
		set(&o)
	}
	if wanted := strings.Join(o.embed.EnableAdmission, ","); len(o.embed.Controllers) == 0 && !strings.Contains(wanted, "ServiceAccount") {
		o.embed.DisableAdmission = append(o.embed.DisableAdmission, "ServiceAccount")
	}
	return o
}

// own returns the definitions in addition to those in folders.
func (o *options) own() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	list := slices.Clone(o.definitions)
	for _, k := range o.kinds {
		d, err := k.Definition()
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// bare reports that the server stores only the initial objects of every cluster when it is ready.
func (o *options) bare() bool {
	return len(o.embed.Controllers)+len(o.embed.Admission)+len(o.embed.EnableAdmission) == 0
}

// gates names the gates on which the initial objects of a cluster depend.
func (o *options) gates() string {
	return o.embed.Release + ";" + strings.Join(o.embed.FeatureGates, ",") + ";" + strings.Join(o.embed.RuntimeConfig, ",")
}

// snapshots are the initial states of servers, by the options on which they depend. They never change, so all
// servers of a process share them.
type snapshots struct{ byKinds sync.Map }

var prepared snapshots

func (s *snapshots) get(kinds string) *memory.Snapshot {
	found, _ := s.byKinds.Load(kinds)
	snapshot, _ := found.(*memory.Snapshot)
	return snapshot
}
