// Package flow classifies requests as API Priority and Fairness does: the first flow
// schema that matches a request decides its priority level.
//
// It promises: the cluster's flow schemas are followed as they change; a request that none
// matches, or that comes before they are known, falls under the built-in catch-all.
// Requests do not queue by level, but those of an exempt level are not counted by the
// limits on requests in flight.
package flow

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/follow"
	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
	"github.com/rowlock/rowlock/server/request"
)

// Class is where a request belongs.
type Class struct {
	Schema, Level string // names
	Exempt        bool   // from limits on how many requests run

	dispatched, refused prometheus.Counter
	executing           prometheus.Gauge
	spec                *flowcontrolv1.FlowSchemaSpec
	header              [2][]string
}

// Classifier follows the flow schemas of a cluster.
type Classifier struct {
	follower *follow.Follower

	schemas map[string]*flowcontrolv1.FlowSchema // changed by the follower alone, as levels is
	levels  map[string]*flowcontrolv1.PriorityLevelConfiguration
	ranked  atomic.Pointer[[]*Class] // nil: to be made anew
	metrics metrics
}

type metrics struct {
	dispatched, refused *prometheus.CounterVec
	executing           *prometheus.GaugeVec
}

// New makes a classifier that knows the mandatory schemas, and those in a cache.
func New(in *cache.Cache) *Classifier {
	labels := []string{"priority_level", "flow_schema"}
	c := &Classifier{metrics: metrics{
		dispatched: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_flowcontrol_dispatched_requests_total", Help: "Requests that were let through, by where they belong.",
		}, labels),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_flowcontrol_rejected_requests_total", Help: "Requests that were refused because too many ran, by where they belong.",
		}, append(labels[:2:2], "reason")),
		executing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_flowcontrol_current_executing_requests", Help: "Requests that run, the beginning of watches included, by where they belong.",
		}, labels),
	}}
	c.reset()
	c.follower = follow.New(in, c.reset, follow.Kind{
		Storage: "flowschemas.flowcontrol.apiserver.k8s.io",
		Set:     set(c, func() map[string]*flowcontrolv1.FlowSchema { return c.schemas }),
		Delete:  func(_, name string) { delete(c.schemas, name); c.mandatory() },
	}, follow.Kind{
		Storage: "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
		Set:     set(c, func() map[string]*flowcontrolv1.PriorityLevelConfiguration { return c.levels }),
		Delete:  func(_, name string) { delete(c.levels, name); c.mandatory() },
	})
	return c
}

// Collectors are the metrics of classes.
func (c *Classifier) Collectors() []prometheus.Collector {
	return []prometheus.Collector{c.metrics.dispatched, c.metrics.refused, c.metrics.executing}
}

func (c *Classifier) reset() {
	c.schemas = map[string]*flowcontrolv1.FlowSchema{}
	c.levels = map[string]*flowcontrolv1.PriorityLevelConfiguration{}
	c.mandatory()
}

// mandatory puts what must be there in the place of what is not.
func (c *Classifier) mandatory() {
	for _, s := range flowcontrol.MandatorySchemas() {
		if c.schemas[s.Name] == nil {
			c.schemas[s.Name] = s
		}
	}
	for _, l := range flowcontrol.MandatoryLevels() {
		if c.levels[l.Name] == nil {
			c.levels[l.Name] = l
		}
	}
	c.ranked.Store(nil)
}

// set keeps an object that can be read.
func set[T any](c *Classifier, in func() map[string]*T) func(*cache.Item) {
	return func(item *cache.Item) {
		obj := new(T)
		if json.Unmarshal(item.JSON, obj) == nil {
			in()[item.Name] = obj
			c.ranked.Store(nil)
		}
	}
}

// Classify finds where a request belongs.
func (c *Classifier) Classify(user *authx.Identity, info *request.Info) *Class {
	c.follower.RLock()
	defer c.follower.RUnlock()
	ranked := c.ranked.Load()
	if ranked == nil {
		ranked = c.rank()
	}
	list := *ranked
	for _, k := range list {
		if matches(k.spec, user, info) {
			return k
		}
	}
	return list[len(list)-1]
}

// rank puts the schemas whose level exists into the order in which they are asked.
// Several may do so at once, with the same result.
func (c *Classifier) rank() *[]*Class {
	list := make([]*Class, 0, len(c.schemas))
	for _, s := range slices.SortedFunc(maps.Values(c.schemas), func(a, b *flowcontrolv1.FlowSchema) int {
		return cmp.Or(cmp.Compare(a.Spec.MatchingPrecedence, b.Spec.MatchingPrecedence), strings.Compare(a.Name, b.Name))
	}) {
		level := c.levels[s.Spec.PriorityLevelConfiguration.Name]
		if level == nil {
			continue
		}
		list = append(list, &Class{
			Schema: s.Name, Level: level.Name, Exempt: level.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt,
			dispatched: c.metrics.dispatched.WithLabelValues(level.Name, s.Name),
			refused:    c.metrics.refused.WithLabelValues(level.Name, s.Name, "concurrency-limit"),
			executing:  c.metrics.executing.WithLabelValues(level.Name, s.Name),
			spec:       &s.Spec,
			header:     [2][]string{{string(s.UID)}, {string(level.UID)}},
		})
	}
	c.ranked.Store(&list)
	return &list
}

// UIDs are those of the schema and the level, as values of headers that nobody may
// change.
func (k *Class) UIDs() (schema, level []string) { return k.header[0], k.header[1] }

// Run counts a request that runs; the function that it returns ends that.
func (k *Class) Run() (end func()) {
	k.dispatched.Inc()
	k.executing.Inc()
	return k.executing.Dec
}

// Refuse counts a request that was refused because too many ran.
func (k *Class) Refuse() { k.refused.Inc() }
