package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// State reports the content of the store and the cache, counted on demand.
type State struct {
	Store *sqlstore.Store
	Cache *cache.Cache
	// Catalogue has the resources whose metrics are shown. Removed resources are shown while objects of them exist.
	Catalogue *kinds.Catalogue
	// ByGroup: metrics of Kubernetes have the labels group and resource.
	ByGroup bool
}

var (
	objectsDesc = prometheus.NewDesc("apiserver_storage_objects",
		"Live objects by resource.", []string{"resource"}, nil)
	watchersDesc = prometheus.NewDesc("rowlock_watchers",
		"Open watchers by resource.", []string{"resource"}, nil)
	corruptDesc = prometheus.NewDesc("rowlock_corrupt_objects",
		"Live objects that cannot be read, by resource.", []string{"resource"}, nil)
	cachedDesc = prometheus.NewDesc("apiserver_watch_cache_resource_version",
		"Version up to which memory has a resource.", []string{"resource"}, nil)
	cachedByGroupDesc = prometheus.NewDesc("apiserver_watch_cache_resource_version",
		"Version up to which memory has a resource.", []string{"group", "resource"}, nil)
	objectsByGroupDesc = prometheus.NewDesc("apiserver_resource_objects",
		"Live objects by resource.", []string{"group", "resource"}, nil)
	revisionDesc = prometheus.NewDesc("rowlock_store_revision",
		"Newest revision that this server's memory has.", nil, nil)
	lagDesc = prometheus.NewDesc("rowlock_store_lag_revisions",
		"Revisions known to be in the database that memory does not have yet.", nil, nil)
	floorDesc = prometheus.NewDesc("rowlock_store_compacted_revision",
		"Revision up to which the log is gone: no watch begins before it.", nil, nil)
	plainDesc = prometheus.NewDesc("rowlock_cache_plain_bytes",
		"Bytes of uncompressed objects in memory; those beyond --cache-plain-bytes that are seldom read are compressed.", nil, nil)
	pastDesc = prometheus.NewDesc("rowlock_store_past_revision",
		"Oldest revision at which all resources can be read.", nil, nil)
	refusingDesc = prometheus.NewDesc("rowlock_store_refusing",
		"1 while the database refuses an operation, by kind; none where it refuses nothing.", []string{"operation", "kind"}, nil)
)

// Describe implements prometheus.Collector.
func (s State) Describe(ch chan<- *prometheus.Desc) {
	if s.ByGroup {
		ch <- objectsByGroupDesc
		ch <- cachedByGroupDesc
	} else {
		ch <- cachedDesc
	}
	for _, d := range []*prometheus.Desc{objectsDesc, watchersDesc, corruptDesc, revisionDesc, lagDesc, floorDesc, pastDesc, plainDesc, refusingDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s State) Collect(ch chan<- prometheus.Metric) {
	for _, f := range s.Store.Refusals() {
		ch <- prometheus.MustNewConstMetric(refusingDesc, prometheus.GaugeValue, 1, f.Operation, string(f.Kind))
	}
	corrupt := map[string]int{}
	for _, c := range s.Cache.Corrupt() {
		corrupt[c.Key.Resource]++
	}
	for _, key := range s.Cache.Storages() {
		if cache.Internal(key) || s.Catalogue.ByStorage(key) == nil && s.Cache.Count(key) == 0 && s.Cache.Watchers(key) == 0 {
			continue
		}
		ch <- prometheus.MustNewConstMetric(objectsDesc, prometheus.GaugeValue, float64(s.Cache.Count(key)), key)
		ch <- prometheus.MustNewConstMetric(watchersDesc, prometheus.GaugeValue, float64(s.Cache.Watchers(key)), key)
		ch <- prometheus.MustNewConstMetric(corruptDesc, prometheus.GaugeValue, float64(corrupt[key]), key)
		if !s.ByGroup {
			ch <- prometheus.MustNewConstMetric(cachedDesc, prometheus.GaugeValue, float64(s.Cache.Revision()), key)
			continue
		}
		resource, group, _ := strings.Cut(key, ".")
		ch <- prometheus.MustNewConstMetric(objectsByGroupDesc, prometheus.GaugeValue, float64(s.Cache.Count(key)), group, resource)
		ch <- prometheus.MustNewConstMetric(cachedByGroupDesc, prometheus.GaugeValue, float64(s.Cache.Revision()), group, resource)
	}
	ch <- prometheus.MustNewConstMetric(revisionDesc, prometheus.GaugeValue, float64(s.Cache.Revision()))
	ch <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, float64(s.Store.Lag()))
	ch <- prometheus.MustNewConstMetric(floorDesc, prometheus.GaugeValue, float64(s.Store.Floor()))
	ch <- prometheus.MustNewConstMetric(plainDesc, prometheus.GaugeValue, float64(s.Cache.PlainBytes()))
	ch <- prometheus.MustNewConstMetric(pastDesc, prometheus.GaugeValue, float64(s.Store.PastFloor("")))
}
