package flow

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/flow/seats"
)

// rank sorts the schemas whose level exists into the order of evaluation, and configures the levels. The
// caller holds the locks.
func (c *Classifier) rank() *index {
	c.ranking.Lock()
	defer c.ranking.Unlock()
	if ranked := c.fresh(); ranked != nil {
		return ranked
	}
	began := c.config.Now()
	c.changed.Store(false)
	levels := c.configure()
	list := make([]*Class, 0, len(c.schemas))
	for _, s := range slices.SortedFunc(maps.Values(c.schemas), func(a, b *flowcontrolv1.FlowSchema) int {
		return cmp.Or(cmp.Compare(a.Spec.MatchingPrecedence, b.Spec.MatchingPrecedence), strings.Compare(a.Name, b.Name))
	}) {
		level := c.levels[s.Spec.PriorityLevelConfiguration.Name]
		if level == nil {
			continue
		}
		k := &Class{
			Schema: s.Name, Level: level.Name, level: levels[level.Name], spec: &s.Spec, hash: maphash.String(c.seed, s.Name),
			header: [2][]string{{string(s.UID)}, {string(level.UID)}},
		}
		k.Exempt = k.level.Exempt()
		if m := s.Spec.DistinguisherMethod; m != nil {
			k.by = m.Type
		}
		k.counts = c.countsOf(pair{k.Level, k.Schema})
		list = append(list, k)
	}
	c.forget(list)
	made := newIndex(list)
	c.ranked.Store(made)
	if now := c.config.Now(); made.size > few {
		c.rest.Store(int64(now + restAfter*(now-began)))
	}
	return made
}

// Ranking thousands of schemas or rules takes some time, and every change of one ranks them all. If there are
// more than a few, the next ranking waits until many times that duration has passed; until then requests are
// classified as before.
const (
	few       = 2000 // schemas, rules and subjects together
	restAfter = 20
)

// fresh returns the index, if it is up to date or may not be made again yet.
func (c *Classifier) fresh() *index {
	ranked := c.ranked.Load()
	if ranked == nil || c.changed.Load() && int64(c.config.Now()) >= c.rest.Load() {
		return nil
	}
	return ranked
}

// configure sets all levels of the scheduler.
func (c *Classifier) configure() map[string]*seats.Level {
	configs := make([]seats.Config, 0, len(c.levels))
	for _, l := range c.levels {
		configs = append(configs, c.configOf(l))
	}
	levels := make(map[string]*seats.Level, len(configs))
	for i, l := range c.Seats.Configure(configs) {
		levels[configs[i].Name] = l
	}
	return levels
}

// configOf reads a level. Without a limit on requests all levels are exempt.
func (c *Classifier) configOf(l *flowcontrolv1.PriorityLevelConfiguration) seats.Config {
	config := seats.Config{Name: l.Name, Kind: seats.Exempt, Borrowing: -1}
	if e := l.Spec.Exempt; e != nil {
		config.Shares, config.Lendable = int(ptr.Deref(e.NominalConcurrencyShares, 0)), int(ptr.Deref(e.LendablePercent, 0))
	}
	limited := l.Spec.Limited
	if l.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt || limited == nil || c.config.Read+c.config.Write <= 0 {
		return config
	}
	config.Kind = seats.Reject
	config.Shares, config.Lendable = int(ptr.Deref(limited.NominalConcurrencyShares, defaultShares)), int(ptr.Deref(limited.LendablePercent, 0))
	config.Borrowing = int(ptr.Deref(limited.BorrowingLimitPercent, -1))
	if q := limited.LimitResponse.Queuing; q != nil && limited.LimitResponse.Type == flowcontrolv1.LimitResponseTypeQueue {
		config.Kind = seats.Queue
		config.Queues, config.Hand, config.Length = int(max(q.Queues, 1)), int(max(q.HandSize, 1)), int(max(q.QueueLengthLimit, 1))
	}
	return config
}

// defaultShares are the shares of a level that names none.
const defaultShares = 30
