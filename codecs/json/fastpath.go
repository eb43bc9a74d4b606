package json

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/rowlock/rowlock/codecs/view"
)

// A Codec has two implementations. The fast path (decode.go, encode.go, canonical.go) is specialized for the types of
// API objects and several times as fast as the standard packages, sigs.k8s.io/json and encoding/json, which stock
// servers use. Both have the same results. The fast path hands a value to the standard packages if it does not support
// it (because of unknown or repeated fields, for example), and if it panics.

// Settings configure a Codec. The zero value uses the fast path.
type Settings struct {
	Standard bool         // use only the standard packages
	Log      *slog.Logger // receives internal errors, once for each type; may be nil
	View     *view.View   // which fields types have; nil: all
}

// New makes a Codec.
func New(s Settings) Codec {
	return Codec{&state{fast: !s.Standard, log: s.Log, plans: plansOf(s.View)}}
}

// Operation is an operation on a value.
type Operation uint8

const (
	Decode Operation = iota
	Encode
	Check     // Canonical
	Transcode // into another form, by Try
	operations
)

func (o Operation) String() string { return [...]string{"decode", "encode", "check", "transcode"}[o] }

// Outcome is the implementation that completed an operation, and the reason.
type Outcome uint8

const (
	Fast     Outcome = iota // the fast path
	Standard                // the standard packages, because of Settings or of the type
	Fallback                // the standard packages, because the fast path does not support the value
	Panicked                // the standard packages, because the fast path panicked
	outcomes
)

func (w Outcome) String() string { return [...]string{"own", "standard", "unclean", "failed"}[w] }

// state is shared by a Codec and its copies.
type state struct {
	fast   bool
	log    *slog.Logger
	plans  *plans
	counts [operations][outcomes]atomic.Int64
	logged sync.Map // reflect.Type of values whose internal error was logged
}

// Count returns the number of operations with an outcome.
func (c Codec) Count(o Operation, w Outcome) int64 {
	if c.state == nil {
		return 0
	}
	return c.state.counts[o][w].Load()
}

// Each calls f with every operation, every outcome, and their Count.
func (c Codec) Each(f func(o Operation, w Outcome, times int64)) {
	for o := range operations {
		for w := range outcomes {
			f(o, w, c.Count(o, w))
		}
	}
}

func (c Codec) count(o Operation, w Outcome) {
	if c.state != nil {
		c.state.counts[o][w].Add(1)
	}
}

func (c Codec) fastPathEnabled() bool { return c.state != nil && c.state.fast }

// Try is for fast paths of other packages, into other forms: it runs f for a value of a type, unless the
// standard implementation is configured, and reports whether f succeeded. It logs panics of f.
func (c Codec) Try(o Operation, t reflect.Type, f func() bool) bool {
	if !c.fastPathEnabled() {
		c.count(o, Standard)
		return false
	}
	return c.try(o, t, f) == Fast
}

// try runs the fast path for a value of a type, and returns the outcome: Fast if f succeeded.
func (c Codec) try(o Operation, t reflect.Type, f func() bool) (outcome Outcome) {
	outcome = Panicked
	defer func() {
		if outcome == Panicked {
			c.failed(o, t, recover())
		}
		c.count(o, outcome)
	}()
	if f() {
		return Fast
	}
	return Fallback
}

func (c Codec) failed(o Operation, t reflect.Type, why any) {
	if c.state.log == nil {
		return
	}
	if _, again := c.state.logged.LoadOrStore(t, true); !again {
		c.state.log.Error("internal error of the JSON codec, the standard packages take over", "operation", o.String(), "type", fmt.Sprint(t), "error", fmt.Sprint(why), "stack", string(debug.Stack()))
	}
}
