package metrics

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	dto "github.com/prometheus/client_model/go"

	"github.com/rowlock/rowlock/server/kinds"
)

// customs are the custom resources that have series. Their definitions come and go, and each leaves more than a
// hundred series behind, which dropGone drops.
type customs struct {
	dropping sync.Mutex
	dropped  atomic.Uint64 // the generation of the catalogue up to which resources that are gone have none

	mu  sync.Mutex
	met map[schema.GroupVersionResource]bool
}

// Without scrapes, series of resources that are gone wait until these are many: each time costs as much as there are series.
const (
	goneLeast = 16
	goneShare = 4 // of the custom resources that have series
)

// meet remembers a resource that gets series.
func (m *Metrics) meet(group, version, plural string) {
	if plural == "" || m.catalogue.Own(group, plural) {
		return
	}
	m.customs.mu.Lock()
	defer m.customs.mu.Unlock()
	if m.customs.met == nil {
		m.customs.met = map[schema.GroupVersionResource]bool{}
	}
	m.customs.met[schema.GroupVersionResource{Group: group, Version: version, Resource: plural}] = true
}

// dropGone drops the series of the resources that the catalogue no longer has: all of them, or if few is not set, many at
// once. A request that is counted meanwhile may leave a series; the next change of the catalogue drops it.
func (m *Metrics) dropGone(few bool) {
	_, generation := m.catalogue.Snapshot()
	if m.customs.dropped.Load() == generation || !m.customs.dropping.TryLock() {
		return
	}
	defer m.customs.dropping.Unlock()
	gone, left := m.customs.gone(m.catalogue)
	if gone == 0 {
		m.customs.dropped.Store(generation)
	}
	if gone == 0 || !few && gone < max(goneLeast, left/goneShare) {
		return
	}
	m.customs.dropped.Store(generation)
	is := newCatalogued(m.catalogue)
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
	m.customs.forget(m.catalogue)
}

// gone counts the resources that the catalogue no longer has, and the others.
func (c *customs) gone(catalogue *kinds.Catalogue) (gone, left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.met {
		if catalogue.Lookup(r.Group, r.Version, r.Resource) == nil {
			gone++
		} else {
			left++
		}
	}
	return gone, left
}

func (c *customs) forget(catalogue *kinds.Catalogue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.met {
		if catalogue.Lookup(r.Group, r.Version, r.Resource) == nil {
			delete(c.met, r)
		}
	}
}

// catalogued looks up resources in the catalogue by any labels.
type catalogued struct {
	*kinds.Catalogue
	grouped map[schema.GroupResource]bool
	plurals map[string]bool
}

func newCatalogued(c *kinds.Catalogue) catalogued {
	is := catalogued{c, map[schema.GroupResource]bool{}, map[string]bool{}}
	for _, r := range c.Known() {
		is.grouped[r.GroupResource()], is.plurals[r.Plural] = true, true
	}
	return is
}

func (is catalogued) gone(group, version, plural string) bool {
	return plural != "" && is.Lookup(group, version, plural) == nil
}

func (is catalogued) goneKind(gvk schema.GroupVersionKind) bool {
	return gvk.Kind != "" && is.LookupKind(gvk) == nil
}

// goneLabels reports whether labels name a resource that is gone.
func (is catalogued) goneLabels(l prometheus.Labels) bool {
	group, grouped := l["group"]
	version, versioned := l["version"]
	plural := l["resource"]
	switch kind := l["kind"]; {
	case kind != "":
		return is.goneKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	case plural == "":
		return false
	case versioned:
		return is.gone(group, version, plural)
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
