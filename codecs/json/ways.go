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

// A Codec has two ways. The own one, in decode.go, encode.go and canonical.go, is made for the
// types of API objects and is several times as fast; the standard one is sigs.k8s.io/json and
// encoding/json, as stock servers use them. Both give the same results. The own way hands a value
// to the standard one if it is not clean (it has unknown or repeated fields, say, or does not
// encode), and also if it fails by itself: a panic inside of it costs time, but no answer.

// Settings configure a Codec. The zero value uses the fast path.
type Settings struct {
	Standard bool         // go the standard way only
	Log      *slog.Logger // receives internal errors, once for each type; may be nil
	View     *view.View   // which fields types have; nil: all
}

// New makes a Codec.
func New(s Settings) Codec { return Codec{&ways{own: !s.Standard, log: s.Log, plans: plansOf(s.View)}} }

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

// Way is how an operation was done in the end.
type Way uint8

const (
	Own      Way = iota // by this package
	Standard            // by the standard packages, because of Settings or of the type
	Unclean             // by the standard packages, because the own way gave the value up
	Failed              // by the standard packages, because of an internal error of the own way
	allWays
)

func (w Way) String() string { return [...]string{"own", "standard", "unclean", "failed"}[w] }

// ways is the state that a Codec shares with its copies.
type ways struct {
	own    bool
	log    *slog.Logger
	plans  *plans
	taken  [operations][allWays]atomic.Int64
	logged sync.Map // reflect.Type of values whose internal error was logged
}

// Taken returns how often an operation has gone a way.
func (c Codec) Taken(o Operation, w Way) int64 {
	if c.ways == nil {
		return 0
	}
	return c.ways.taken[o][w].Load()
}

// Each calls f with every operation, every way and Taken of both.
func (c Codec) Each(f func(o Operation, w Way, times int64)) {
	for o := range operations {
		for w := range allWays {
			f(o, w, c.Taken(o, w))
		}
	}
}

func (c Codec) took(o Operation, w Way) {
	if c.ways != nil {
		c.ways.taken[o][w].Add(1)
	}
}

// goesOwn reports whether the own way is tried first.
func (c Codec) goesOwn() bool { return c.ways != nil && c.ways.own }

// Try is for fast paths of other packages, into other forms: it runs f for a value of a type, unless the
// standard implementation is configured, and reports whether f succeeded. It logs panics of f.
func (c Codec) Try(o Operation, t reflect.Type, f func() bool) bool {
	if !c.goesOwn() {
		c.took(o, Standard)
		return false
	}
	return c.try(o, t, f) == Own
}

// try runs the own way for a value of a type, and says which way has been taken if it is the last
// one: Own if f could do it, else why not.
func (c Codec) try(o Operation, t reflect.Type, f func() bool) (way Way) {
	way = Failed
	defer func() {
		if way == Failed {
			c.failed(o, t, recover())
		}
		c.took(o, way)
	}()
	if f() {
		return Own
	}
	return Unclean
}

func (c Codec) failed(o Operation, t reflect.Type, why any) {
	if c.ways.log == nil {
		return
	}
	if _, again := c.ways.logged.LoadOrStore(t, true); !again {
		c.ways.log.Error("internal error of the JSON codec, the standard packages take over", "operation", o.String(), "type", fmt.Sprint(t), "error", fmt.Sprint(why), "stack", string(debug.Stack()))
	}
}
