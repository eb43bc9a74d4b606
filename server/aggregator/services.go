package aggregator

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/history"
)

// Storage is the storage key of APIServices.
const Storage = "apiservices.apiregistration.k8s.io"

// Services are all APIServices at one moment. Neither they nor the objects change; a
// later moment is another pointer.
type Services struct {
	remote map[schema.GroupVersion]*apiregistrationv1.APIService
	sorted func() listing // made once: with thousands of them, few requests need more than remote
}

// listing is the result of sorting APIServices.
type listing struct {
	all    []*apiregistrationv1.APIService // by name
	groups []Group
}

// Group are the APIServices of one group, the preferred version first.
type Group struct {
	Name     string
	Priority int32 // the highest of its APIServices' groupPriorityMinimum
	Versions []*apiregistrationv1.APIService
}

// All returns the APIServices in the order of their names.
func (s *Services) All() []*apiregistrationv1.APIService { return s.sorted().all }

// Remote returns the APIService that leaves a group version to another server; nil: none does.
func (s *Services) Remote(gv schema.GroupVersion) *apiregistrationv1.APIService {
	return s.remote[gv]
}

// AnyRemote reports whether another server serves anything.
func (s *Services) AnyRemote() bool { return len(s.remote) > 0 }

// Groups returns the groups in the order of discovery.
func (s *Services) Groups() []Group { return s.sorted().groups }

// GroupVersion returns the group version of an APIService.
func GroupVersion(s *apiregistrationv1.APIService) schema.GroupVersion {
	return schema.GroupVersion{Group: s.Spec.Group, Version: s.Spec.Version}
}

// newServices keeps byName, which must not change any more.
func newServices(byName map[string]*apiregistrationv1.APIService) *Services {
	s := &Services{remote: map[schema.GroupVersion]*apiregistrationv1.APIService{}}
	for _, one := range byName {
		if one.Spec.Service != nil && !withheld(one) {
			s.remote[GroupVersion(one)] = one
		}
	}
	s.sorted = sync.OnceValue(func() listing { return listed(byName) })
	return s
}

// withheld reports an APIService to which no request is sent: no other place records that.
func withheld(s *apiregistrationv1.APIService) bool {
	return s.Spec.Service != nil && s.Spec.Group == history.GroupVersion.Group
}

func listed(byName map[string]*apiregistrationv1.APIService) (l listing) {
	at := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		one := byName[name]
		if withheld(one) {
			continue
		}
		l.all = append(l.all, one)
		i, known := at[one.Spec.Group]
		if !known {
			i = len(l.groups)
			at[one.Spec.Group] = i
			l.groups = append(l.groups, Group{Name: one.Spec.Group})
		}
		g := &l.groups[i]
		g.Priority = max(g.Priority, one.Spec.GroupPriorityMinimum)
		g.Versions = append(g.Versions, one)
	}
	for i := range l.groups {
		slices.SortStableFunc(l.groups[i].Versions, compareVersions)
	}
	slices.SortStableFunc(l.groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	return l
}

// compareVersions puts the higher versionPriority first, then the more mature version.
func compareVersions(a, b *apiregistrationv1.APIService) int {
	return cmp.Or(
		cmp.Compare(b.Spec.VersionPriority, a.Spec.VersionPriority),
		version.CompareKubeAwareVersionStrings(b.Spec.Version, a.Spec.Version),
	)
}

// Services returns the Services in the cache.
func (a *Aggregator) Services() *Services {
	a.follower.CatchUp()
	if s := a.services.Load(); s != nil {
		return s
	}
	a.follower.RLock()
	defer a.follower.RUnlock()
	s := newServices(maps.Clone(a.byName))
	a.services.Store(s)
	a.forgetUnused(s)
	return s
}

// RemoteVersions lists the group versions that other servers serve, in no order.
func (a *Aggregator) RemoteVersions() []schema.GroupVersion {
	return slices.Collect(maps.Keys(a.Services().remote))
}

func (a *Aggregator) reset() {
	a.byName = map[string]*apiregistrationv1.APIService{}
	a.services.Store(nil)
}

func (a *Aggregator) set(item *cache.Item) {
	s := &apiregistrationv1.APIService{}
	if _, err := a.cfg.Cache.JSON().Decode(item.JSON(), s, codecs.Ignore); err != nil {
		a.forget("", item.Name) // an unreadable object is ignored
		return
	}
	a.byName[item.Name] = s
	a.services.Store(nil)
}

func (a *Aggregator) forget(_, name string) {
	delete(a.byName, name)
	a.services.Store(nil)
}
