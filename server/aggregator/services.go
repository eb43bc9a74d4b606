package aggregator

import (
	"cmp"
	"maps"
	"slices"

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
	all    []*apiregistrationv1.APIService // by name
	remote map[schema.GroupVersion]*apiregistrationv1.APIService
	groups []Group
}

// Group are the APIServices of one group, the preferred version first.
type Group struct {
	Name     string
	Priority int32 // the highest of its APIServices' groupPriorityMinimum
	Versions []*apiregistrationv1.APIService
}

// All are the APIServices in the order of their names.
func (s *Services) All() []*apiregistrationv1.APIService { return s.all }

// Remote is the APIService that leaves a group version to another server; nil: none does.
func (s *Services) Remote(gv schema.GroupVersion) *apiregistrationv1.APIService {
	return s.remote[gv]
}

// AnyRemote says whether another server serves anything.
func (s *Services) AnyRemote() bool { return len(s.remote) > 0 }

// Groups are the groups in the order of discovery.
func (s *Services) Groups() []Group { return s.groups }

// GroupVersion is what an APIService is about.
func GroupVersion(s *apiregistrationv1.APIService) schema.GroupVersion {
	return schema.GroupVersion{Group: s.Spec.Group, Version: s.Spec.Version}
}

func newServices(byName map[string]*apiregistrationv1.APIService) *Services {
	s := &Services{remote: map[schema.GroupVersion]*apiregistrationv1.APIService{}}
	at := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		one := byName[name]
		if one.Spec.Service != nil && one.Spec.Group == history.GroupVersion.Group {
			continue // nobody else tells what was here
		}
		s.all = append(s.all, one)
		if one.Spec.Service != nil {
			s.remote[GroupVersion(one)] = one
		}
		i, known := at[one.Spec.Group]
		if !known {
			i = len(s.groups)
			at[one.Spec.Group] = i
			s.groups = append(s.groups, Group{Name: one.Spec.Group})
		}
		g := &s.groups[i]
		g.Priority = max(g.Priority, one.Spec.GroupPriorityMinimum)
		g.Versions = append(g.Versions, one)
	}
	for i := range s.groups {
		slices.SortStableFunc(s.groups[i].Versions, compareVersions)
	}
	slices.SortStableFunc(s.groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	return s
}

// compareVersions puts the higher versionPriority first, then the more mature version.
func compareVersions(a, b *apiregistrationv1.APIService) int {
	return cmp.Or(
		cmp.Compare(b.Spec.VersionPriority, a.Spec.VersionPriority),
		version.CompareKubeAwareVersionStrings(b.Spec.Version, a.Spec.Version),
	)
}

// Services are those that the cache knows of.
func (a *Aggregator) Services() *Services {
	a.follower.CatchUp()
	if s := a.services.Load(); s != nil {
		return s
	}
	a.follower.RLock()
	defer a.follower.RUnlock()
	s := newServices(a.byName)
	a.services.Store(s)
	a.forgetUnused(s)
	return s
}

func (a *Aggregator) reset() {
	a.byName = map[string]*apiregistrationv1.APIService{}
	a.services.Store(nil)
}

func (a *Aggregator) set(item *cache.Item) {
	s := &apiregistrationv1.APIService{}
	if _, err := a.cfg.Cache.JSON().Decode(item.JSON(), s, codecs.Ignore); err != nil {
		a.forget("", item.Name) // an object that cannot be read says nothing
		return
	}
	a.byName[item.Name] = s
	a.services.Store(nil)
}

func (a *Aggregator) forget(_, name string) {
	delete(a.byName, name)
	a.services.Store(nil)
}
