// Package flow is API Priority and Fairness: the first flow schema that matches a request
// decides its priority level, and the level decides when the request runs.
//
// It promises: it follows the cluster's flow schemas and priority levels as they change;
// a request that no schema matches, or that arrives before they are loaded, belongs to the
// built-in catch-all. Package seats decides which requests run; this package translates the objects
// (levels.go), finds the schemas for a user (index.go), estimates the cost of a request (width.go), and
// reports (metrics.go, dump.go). With thousands of schemas, rules and subjects, a change
// takes effect a little later.
//
// Clients that may write flow schemas and priority levels determine the shares of other clients, and the number of queues
// and series of metrics: package seats limits the queues, and the series of removed schemas are dropped.
package flow

import (
	"encoding/json"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/flow/seats"
	"github.com/rowlock/rowlock/server/follow"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
	"github.com/rowlock/rowlock/server/request"
)

// Config configures a Classifier. The zero Config classifies and limits nothing.
type Config struct {
	Read, Write int          // requests that run at once; their sum is the number of seats. 0: no limit
	Users       seats.Limits // of each user
	// Plain limits requests by their number alone, without classification.
	Plain bool
	// Patience limits the wait of a request without a deadline in a queue. Others wait
	// for a quarter of their time, a minute at most. 0: a quarter of a minute.
	Patience  time.Duration
	Catalogue *kinds.Catalogue             // nil: all requests take one seat
	Now       func() (since time.Duration) // since some moment, and never 0; nil: the time since New
}

// Class is a flow schema with its priority level.
type Class struct {
	Schema, Level string // names
	Exempt        bool   // from limits on running requests

	level  *seats.Level
	counts *counts
	spec   *flowcontrolv1.FlowSchemaSpec
	by     flowcontrolv1.FlowDistinguisherMethodType
	hash   uint64
	header [2][]string
}

// Classifier follows the flow schemas and priority levels of a cluster.
type Classifier struct {
	// Seats schedules the requests.
	Seats *seats.Scheduler

	config   Config
	cache    *cache.Cache
	follower *follow.Follower
	seed     maphash.Seed
	plain    [2]*seats.Level // by seats.Class, if requests are not classified
	metrics  metrics

	schemas map[string]*flowcontrolv1.FlowSchema // changed only by the follower, like levels
	levels  map[string]*flowcontrolv1.PriorityLevelConfiguration
	changed atomic.Bool // since ranked was made
	ranked  atomic.Pointer[index]
	rest    atomic.Int64 // until this time, by the clock, ranked is not made again

	ranking sync.Mutex // guards counts
	counts  map[pair]*counts
}

// New returns a classifier with the mandatory schemas, and those in a cache.
func New(in *cache.Cache, config Config) *Classifier {
	if config.Now == nil {
		began := time.Now()
		config.Now = func() time.Duration { return time.Since(began) + 1 }
	}
	if config.Patience <= 0 {
		config.Patience = longestWait / 4
	}
	c := &Classifier{
		Seats:  seats.New(config.Read+config.Write, config.Users, config.Now),
		config: config, cache: in, seed: maphash.MakeSeed(), metrics: newMetrics(), counts: make(map[pair]*counts),
	}
	if config.Plain {
		c.plain = [2]*seats.Level{c.Seats.Fixed("reading", config.Read), c.Seats.Fixed("writing", config.Write)}
		return c
	}
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

func (c *Classifier) reset() {
	c.schemas = map[string]*flowcontrolv1.FlowSchema{}
	c.levels = map[string]*flowcontrolv1.PriorityLevelConfiguration{}
	c.mandatory()
}

// mandatory adds the mandatory objects that are missing.
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
	c.changed.Store(true)
}

// set adds an object, if it can be read.
func set[T any](c *Classifier, in func() map[string]*T) func(*cache.Item) {
	return func(item *cache.Item) {
		obj := new(T)
		if json.Unmarshal(item.JSON(), obj) == nil {
			in()[item.Name] = obj
			c.changed.Store(true)
		}
	}
}

// Classify returns the class of a request; nil if requests are not classified.
func (c *Classifier) Classify(user *authx.Identity, info *request.Info) *Class {
	if c.config.Plain {
		return nil
	}
	return c.classes().find(user, info)
}

// classes returns the flow schemas, prepared for evaluation.
func (c *Classifier) classes() *index {
	c.follower.RLock()
	defer c.follower.RUnlock()
	if ranked := c.fresh(); ranked != nil {
		return ranked
	}
	return c.rank()
}

// Plain reports whether requests are limited by their number alone.
func (c *Classifier) Plain() bool { return c.config.Plain }

// Now returns the time since some moment, by the clock of the seats.
func (c *Classifier) Now() time.Duration { return c.config.Now() }

// UIDs returns the UIDs of the schema and the level, as values of headers. Callers must not change
// them.
func (k *Class) UIDs() (schema, level []string) { return k.header[0], k.header[1] }

// AssignSeats sets the level, the flow and the seats of a request: those of its class, or without a class those of all
// requests that read, or write.
func (c *Classifier) AssignSeats(r *seats.Request, k *Class, user *authx.Identity, info *request.Info) {
	if k == nil {
		r.Level, r.Flow, r.Seats = c.plain[r.Class], &c.metrics.plain, 1
		return
	}
	r.Level, r.Flow = k.level, &k.counts.Flow
	if k.Exempt {
		return
	}
	r.Hash = k.hash
	switch {
	case k.by == flowcontrolv1.FlowDistinguisherMethodByUserType && user != nil:
		r.Hash ^= maphash.String(c.seed, user.Name)
	case k.by == flowcontrolv1.FlowDistinguisherMethodByNamespaceType:
		r.Hash ^= maphash.String(c.seed, info.Namespace)
	}
	c.widen(r, k, info)
}

// longestWait bounds how long a request may wait in a queue.
const longestWait = time.Minute

// Patience returns how long a request that arrived at a time may wait in a queue, given its deadline: a quarter of
// the difference.
func (c *Classifier) Patience(came, until time.Time) time.Duration {
	if until.IsZero() {
		return min(c.config.Patience, longestWait)
	}
	return min(until.Sub(came)/4, longestWait)
}
