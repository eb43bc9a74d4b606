package conns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// Headroom is what must be left free at the beginning of what is given to a Stream.
const Headroom = 10

// Stream is the body of one answer that has been taken over from package net/http or
// http2. What is written need not wait for the client, so that a goroutine that serves
// many clients can write to each. Only one goroutine at a time may write.
type Stream interface {
	// TryWrite writes what stands in b behind Headroom, and does not wait. b may grow, and
	// can be used again. blocked says that the client is slow and that something has been
	// kept: then Flush must be called, or Write.
	TryWrite(b *[]byte) (blocked bool, err error)
	// Write is TryWrite, but waits while the client is slow. A client that is slow for too
	// long has gone.
	Write(b *[]byte) error
	// Flush waits until all that TryWrite kept has been written.
	Flush() error
	// Close ends the answer. complete says that the client is to know that it is whole.
	Close(complete bool)
	// Wait waits until a time, or until Wake is called. Where nobody else sees that the
	// client has gone it notices that as well: then it fails, and the request's context
	// ends.
	Wait(until time.Time) error
	// Outlive has the answer go on after its handler has returned, or says that it cannot.
	// The request's context then ends when the client has gone, or wants no more, and Over
	// must be called, once, when Close has been and all is done that the request's end asks
	// for: nothing else of it is waited for. Wait is not called any more.
	Outlive() bool
	Over()
	// WhenEnded has told be called when ctx ends, of an answer that goes on, unless stop was: as context.AfterFunc does,
	// but by whoever ends it, who may hold locks, so told must not wait; and it need not be called for what has ended
	// before. ctx is the request's, or has no other end than that.
	WhenEnded(ctx context.Context, told func()) (stop func() bool)
	// Wake ends Wait, or the next one. Anybody may call it, at any time.
	Wake()
}

// DeliveryMode says how the bodies of watches are sent.
type DeliveryMode string

const (
	// Direct takes them over from packages net/http and http2.
	Direct DeliveryMode = "direct"
	// Standard leaves them to packages net/http and http2.
	Standard DeliveryMode = "standard"
)

// Reasons for which the direct way is given up.
const (
	ReasonSelfTest  = "self_test" // the test at start has failed
	ReasonHandshake = "handshake" // package http2 did not send a stream's token as expected
	ReasonTakeover  = "takeover"  // package net/http did not give a connection away
	ReasonPanic     = "panic"     // the code of the direct way has panicked
)

// DeliveryObserver is told what Delivery does.
type DeliveryObserver interface {
	// DeliveryMode is told how watches are sent that begin from now on.
	DeliveryMode(direct bool)
	// Delivering is told of each watch that begins; http2 is its protocol.
	Delivering(http2, direct bool)
	// FellBack is told once, if the direct way was given up.
	FellBack(reason string)
}

// Opener takes an answer over once its header has been flushed, without a length. Whoever
// is given a Stream must call Close before the handler returns.
//
// It returns neither a stream nor an error where the client does not qualify: then the
// answer goes on by w. errTakeover says the same of an answer that should have qualified.
// With any other error the answer cannot go on.
type Opener func(ctx context.Context, w http.ResponseWriter) (Stream, error)

// DeliveryConfig is what a Delivery is made of. Its zero value is the direct way.
type DeliveryConfig struct {
	Mode     DeliveryMode     // default Direct
	Shorts   bool             // short requests are served beside package http2 as well: they are tested too
	Log      *slog.Logger     // default: none
	Observer DeliveryObserver // nil: none
	Opener   Opener           // default: the direct way of this package; tests replace it

	// RestFrom is how many HTTP/2 connections there must be, a new one among them, for that to rest while only
	// watches go on over it. Negative: none rests.
	RestFrom int
}

// Delivery decides for a whole server how the bodies of watches are sent: the direct way
// as long as that works, or the standard way. The first failure of the direct way
// switches it off for good. The nil Delivery is the standard way.
type Delivery struct {
	cfg           DeliveryConfig
	direct        atomic.Bool
	tokenPatience time.Duration // shorter in tests, as the next
	patience      time.Duration // with a client that has no window for a token
	restAfter     time.Duration
	sessions      atomic.Int64 // connections that package http2 serves, or is to serve again
}

// mayRest counts a connection that begins, and says whether it may rest. left is for its end.
func (d *Delivery) mayRest() (may bool, left func()) {
	if d == nil {
		return false, func() {}
	}
	now := d.sessions.Add(1)
	return d.cfg.RestFrom >= 0 && now >= int64(d.cfg.RestFrom), func() { d.sessions.Add(-1) }
}

// NewDelivery makes one.
func NewDelivery(cfg DeliveryConfig) *Delivery {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Opener == nil {
		cfg.Opener = TakeOver
	}
	d := &Delivery{cfg: cfg, tokenPatience: tokenPatience, patience: clientPatience, restAfter: restAfter}
	d.direct.Store(cfg.Mode != Standard)
	if cfg.Observer != nil {
		cfg.Observer.DeliveryMode(d.Direct())
	}
	return d
}

// Direct says whether watches that begin now are sent the direct way.
func (d *Delivery) Direct() bool { return d != nil && d.direct.Load() }

// errTakeover: the answer was not given away, and is as it was before.
var errTakeover = errors.New("the answer cannot be taken over")

// errClient: it is the client who keeps the answer from being taken over.
var errClient = errors.New("the client takes nothing, or too little at a time")

// Open takes an answer over; see Opener. Whatever goes wrong on the way that is no fault
// of the client switches to the standard way.
func (d *Delivery) Open(ctx context.Context, w http.ResponseWriter) (Stream, error) {
	var s Stream
	var err error
	if d.Direct() {
		s, err = d.open(ctx, w)
	}
	if d != nil && d.cfg.Observer != nil && err == nil {
		_, http2 := FromContext(ctx).(*HTTP2Conn)
		d.cfg.Observer.Delivering(http2, s != nil)
	}
	return s, err
}

func (d *Delivery) open(ctx context.Context, w http.ResponseWriter) (s Stream, err error) {
	defer d.caught(&err)
	s, err = d.cfg.Opener(ctx, w)
	switch {
	case err == nil && s != nil:
		return &guarded{stream: s, delivery: d}, nil
	case err == nil, errors.Is(err, errClient):
		return nil, err
	case errors.Is(err, errTakeover):
		d.fallBack(ReasonTakeover, err)
		return nil, nil
	}
	d.fallBack(ReasonHandshake, err)
	return nil, err
}

// TakeOver is the direct way, an Opener. Over HTTP/1.1 it hijacks the connection; over HTTP/2 it
// sends data frames between those of package http2.
func TakeOver(ctx context.Context, w http.ResponseWriter) (Stream, error) {
	for {
		switch h := w.(type) {
		case *hijackable:
			return h.hijack()
		case *shortAnswer:
			return nil, nil // package http2 does not know the stream
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = u.Unwrap()
	}
	if c, ok := FromContext(ctx).(*HTTP2Conn); ok {
		return c.takeOver(ctx, w)
	}
	return nil, nil
}

// fallBack switches to the standard way, once and for good.
func (d *Delivery) fallBack(reason string, err error) {
	if d == nil || !d.direct.CompareAndSwap(true, false) {
		return
	}
	d.cfg.Log.Error("watches are sent, and requests served, the standard way from now on, as the direct way has failed", "reason", reason, "error", err)
	if o := d.cfg.Observer; o != nil {
		o.DeliveryMode(false)
		o.FellBack(reason)
	}
}

// caught turns a panic of the direct way into an error, and switches to the standard
// way. It must be deferred.
func (d *Delivery) caught(err *error) {
	if p := recover(); p != nil {
		*err = d.panicked(p)
	}
}

// panicked switches to the standard way after a panic, of which it makes an error.
func (d *Delivery) panicked(p any) error {
	err := fmt.Errorf("panic: %v", p)
	d.fallBack(ReasonPanic, fmt.Errorf("%w\n%s", err, debug.Stack()))
	return err
}

// guarded is a stream whose panics cost its own client alone. After one it does nothing
// any more.
type guarded struct {
	stream   Stream
	delivery *Delivery
	broken   atomic.Bool
}

var errBroken = errors.New("the stream has panicked")

func (g *guarded) caught(err *error) {
	if p := recover(); p != nil {
		g.broken.Store(true)
		*err = g.delivery.panicked(p)
	}
}

func (g *guarded) TryWrite(b *[]byte) (blocked bool, err error) {
	if g.broken.Load() {
		return false, errBroken
	}
	defer g.caught(&err)
	return g.stream.TryWrite(b)
}

func (g *guarded) Write(b *[]byte) (err error) {
	if g.broken.Load() {
		return errBroken
	}
	defer g.caught(&err)
	return g.stream.Write(b)
}

func (g *guarded) Flush() (err error) {
	if g.broken.Load() {
		return errBroken
	}
	defer g.caught(&err)
	return g.stream.Flush()
}

// Close ends what is broken as an answer that is not whole.
func (g *guarded) Close(complete bool) {
	var err error
	defer g.caught(&err)
	g.stream.Close(complete && !g.broken.Load())
}

func (g *guarded) Wait(until time.Time) (err error) {
	if g.broken.Load() {
		return errBroken
	}
	defer g.caught(&err)
	return g.stream.Wait(until)
}

func (g *guarded) Outlive() bool {
	return !g.broken.Load() && g.stream.Outlive()
}

func (g *guarded) WhenEnded(ctx context.Context, told func()) (stop func() bool) {
	return g.stream.WhenEnded(ctx, told)
}

func (g *guarded) Over() { g.stream.Over() }

func (g *guarded) Wake() {
	var err error
	defer g.caught(&err)
	g.stream.Wake()
}
