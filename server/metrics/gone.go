package metrics

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	dto "github.com/prometheus/client_model/go"

	"github.com/rowlock/rowlock/server/kinds"
)

// customs are the custom resources, and the versions of aggregated servers, that have series. Their definitions and
// APIServices come and go, and each leaves up to more than a hundred series behind, which dropGone drops.
type customs struct {
	dropping sync.Mutex
	dropped  atomic.Uint64 // the generation of the catalogue up to which resources that are gone have none

	mu         sync.Mutex
	met        map[schema.GroupVersionResource]bool
	aggregated map[schema.GroupVersion]bool
}

// Without scrapes, series of resources that are gone wait until these are many: each time costs as much as there are series.
const (
	goneLeast = 16
	goneShare = 4 // of the custom resources that have series
)

// meet remembers a resource, or a version of an aggregated server, that gets series.
func (m *Metrics) meet(group, version, plural string) {
	if plural == "" && version == "" || plural != "" && m.catalogue.Own(group, plural) {
		return
	}
	m.customs.mu.Lock()
	defer m.customs.mu.Unlock()
	if plural == "" {
		if m.customs.aggregated == nil {
			m.customs.aggregated = map[schema.GroupVersion]bool{}
		}
		m.customs.aggregated[schema.GroupVersion{Group: group, Version: version}] = true
		return
	}
	if m.customs.met == nil {
		m.customs.met = map[schema.GroupVersionResource]bool{}
	}
	m.customs.met[schema.GroupVersionResource{Group: group, Version: version, Resource: plural}] = true
}

// dropGone drops the series of the resources that the catalogue no longer has, and of the versions that no aggregated server
// serves any more: all of them, or if few is not set, many at once. A request that is counted meanwhile may leave a series,
// which goes with the next ones.
func (m *Metrics) dropGone(few bool) {
	_, generation := m.catalogue.Snapshot()
	same, aggregates := m.customs.dropped.Load() == generation, m.customs.anyAggregated()
	if same && !aggregates || !m.customs.dropping.TryLock() {
		return
	}
	defer m.customs.dropping.Unlock()
	is := catalogued{Catalogue: m.catalogue, aggregated: map[schema.GroupVersion]bool{}}
	if aggregates {
		for _, gv := range m.Aggregated() {
			is.aggregated[gv] = true
		}
	}
	gone, left := m.customs.gone(is, same)
	if gone == 0 {
		m.customs.dropped.Store(generation)
	}
	if gone == 0 || !few && gone < max(goneLeast, left/goneShare) {
		return
	}
	m.customs.dropped.Store(generation)
	is = is.listed()
	for _, v := range []vector{m.requests, m.longRunning, m.own, m.aborts, m.terminated, m.deprecated,
		m.watches.events, m.watches.sizes, m.watches.initial, m.watches.ended, m.watches.sharded, m.watches.leftOut} {
		dropFrom(v, is)
	}
	for _, h := range []*histograms{m.durations, m.slis, m.sizes} {
		h.drop(is)
	}
	m.known.Range(func(key, _ any) bool {
		if l := key.(seen).labels; is.gone(l.group, l.version, l.resource) {
			m.known.Delete(key)
		}
		return true
	})
	m.lasts.Range(func(key, _ any) bool {
		if l := key.(labels); is.gone(l.group, l.version, l.resource) {
			m.lasts.Delete(key)
		}
		return true
	})
	m.watches.known.Range(func(key, _ any) bool {
		if is.goneKind(key.(schema.GroupVersionKind)) {
			m.watches.known.Delete(key)
		}
		return true
	})
	m.customs.forget(is)
}

func (c *customs) anyAggregated() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.aggregated) > 0
}

// gone counts the resources that the catalogue no longer has, unless it is the same as before, the versions that are no longer
// aggregated, and the others.
func (c *customs) gone(is catalogued, same bool) (gone, left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gv := range c.aggregated {
		if is.gone(gv.Group, gv.Version, "") {
			gone++
		}
	}
	if !same {
		for r := range c.met {
			if is.gone(r.Group, r.Version, r.Resource) {
				gone++
			}
		}
	}
	return gone, len(c.aggregated) + len(c.met) - gone
}

func (c *customs) forget(is catalogued) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.aggregated, func(gv schema.GroupVersion, _ bool) bool { return is.gone(gv.Group, gv.Version, "") })
	maps.DeleteFunc(c.met, func(r schema.GroupVersionResource, _ bool) bool { return is.gone(r.Group, r.Version, r.Resource) })
}

// catalogued looks up, by any labels, what the catalogue and aggregated servers have.
type catalogued struct {
	*kinds.Catalogue
	aggregated map[schema.GroupVersion]bool
	grouped    map[schema.GroupResource]bool // without a resource: the groups of aggregated servers
	plurals    map[string]bool
}

// listed returns what goneLabels needs.
func (is catalogued) listed() catalogued {
	is.grouped, is.plurals = map[schema.GroupResource]bool{}, map[string]bool{}
	for gv := range is.aggregated {
		is.grouped[schema.GroupResource{Group: gv.Group}] = true
	}
	for _, r := range is.Known() {
		is.grouped[r.GroupResource()], is.plurals[r.Plural] = true, true
	}
	return is
}

// gone reports whether a resource is gone, or without one a version of an aggregated server.
func (is catalogued) gone(group, version, plural string) bool {
	if plural == "" {
		return version != "" && !is.aggregated[schema.GroupVersion{Group: group, Version: version}]
	}
	return is.Lookup(group, version, plural) == nil
}

func (is catalogued) goneKind(gvk schema.GroupVersionKind) bool {
	return gvk.Kind != "" && is.LookupKind(gvk) == nil
}

// goneLabels reports whether labels name a resource, or a group or version of an aggregated server, that is gone.
func (is catalogued) goneLabels(l prometheus.Labels) bool {
	group, grouped := l["group"]
	version, versioned := l["version"]
	plural := l["resource"]
	switch kind := l["kind"]; {
	case kind != "":
		return is.goneKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	case versioned:
		return is.gone(group, version, plural)
	case plural == "" && group == "":
		return false
	case grouped:
		return !is.grouped[schema.GroupResource{Group: group, Resource: plural}]
	}
	return !is.plurals[plural]
}

// vector is a vector of counters, gauges or histograms.
type vector interface {
	prometheus.Collector
	Delete(prometheus.Labels) bool
}

// dropFrom deletes from a vector what labels a resource that is gone.
func dropFrom(v vector, is catalogued) {
	all := make(chan prometheus.Metric)
	go func() { // it ends when all are taken, which is below
		v.Collect(all)
		close(all)
	}()
	var gone []prometheus.Labels
	for one := range all {
		var written dto.Metric
		if one.Write(&written) != nil {
			continue // no vector's metric fails to be written
		}
		l := make(prometheus.Labels, len(written.Label))
		for _, pair := range written.Label {
			l[pair.GetName()] = pair.GetValue()
		}
		if is.goneLabels(l) {
			gone = append(gone, l)
		}
	}
	for _, l := range gone {
		v.Delete(l)
	}
}
