package audit

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/metricset"
)

// Sink takes events, each one JSON object. An error is for the client: the request
// must not go on unrecorded.
type Sink interface{ Take(event []byte) error }

// Metrics counts recorded and lost events.
type Metrics struct {
	*metricset.Set
	events   prometheus.Counter
	rejected prometheus.Counter
	levels   *prometheus.CounterVec
	errors   *prometheus.CounterVec
}

// NewMetrics makes the metrics.
func NewMetrics() *Metrics {
	s := metricset.New("apiserver_audit_")
	return &Metrics{
		Set:      s,
		events:   s.Counter("event_total", "Audit events that were made and sent on to the backends."),
		rejected: s.Counter("requests_rejected_total", "Requests refused because they could not be recorded."),
		levels:   s.Counters("level_total", "Requests by the audit level of their policy.", "level"),
		errors:   s.Counters("error_total", "Audit events that a backend lost.", "plugin"),
	}
}

func (m *Metrics) level(l Level) { m.levels.WithLabelValues(string(l)).Inc() }

// Rejected counts a request that was refused for want of a record.
func (m *Metrics) Rejected() { m.rejected.Inc() }

// Lost counts events that a backend could not keep.
func (m *Metrics) Lost(backend string, n int) { m.errors.WithLabelValues(backend).Add(float64(n)) }

// Sender delivers a batch of events, or returns an error.
type Sender interface {
	Name() string
	Send(ctx context.Context, events [][]byte) error
}

// Lines writes one event a line.
type Lines struct {
	mu sync.Mutex
	W  io.Writer
}

// Name implements Sender.
func (*Lines) Name() string { return "log" }

// Send implements Sender.
func (l *Lines) Send(_ context.Context, events [][]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		if _, err := l.W.Write(append(e[:len(e):len(e)], '\n')); err != nil {
			return fmt.Errorf("writing the audit log: %w", err)
		}
	}
	return nil
}

// Blocking sends each event at once, while its request waits.
type Blocking struct {
	Sender  Sender
	Metrics *Metrics
	Strict  bool        // a lost event fails the request
	Report  func(error) // why an event was lost; may be nil
}

// Take implements Sink.
func (b *Blocking) Take(event []byte) error {
	err := b.Sender.Send(context.Background(), [][]byte{event})
	if err == nil {
		return nil
	}
	b.Metrics.Lost(b.Sender.Name(), 1)
	if b.Strict {
		return err
	}
	if b.Report != nil {
		b.Report(err)
	}
	return nil
}

// MaxKept limits the bytes of events that a Batch holds, including those that are being sent: clients determine the
// sizes of the bodies in them.
const MaxKept = 256 << 20

// Batch keeps events for a loop that sends them. A full buffer loses events, as does one
// with MaxKept bytes; it never makes a request wait.
type Batch struct {
	Sender   Sender
	Metrics  *Metrics
	MaxSize  int           // events a batch
	MaxBytes int           // of a batch; 0: any
	MaxWait  time.Duration // how long an event waits for others
	Throttle *Throttle     // nil: as fast as batches come
	Report   func(error)   // why a batch was lost

	queue chan []byte
	kept  atomic.Int64 // bytes
}

// Start allocates the buffer. Call it before Take and Run.
func (b *Batch) Start(buffer int) { b.queue = make(chan []byte, buffer) }

// Take implements Sink.
func (b *Batch) Take(event []byte) error {
	size := int64(len(event))
	if b.kept.Add(size) <= MaxKept {
		select {
		case b.queue <- event:
			return nil
		default:
		}
	}
	b.kept.Add(-size)
	b.Metrics.Lost("buffered", 1)
	return nil
}

// flushTime bounds how long Run sends waiting events at its end.
const flushTime = 5 * time.Second

// Run sends until ctx ends, and then the remaining events.
func (b *Batch) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if events := b.collect(ctx); len(events) > 0 {
			sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
			stop := context.AfterFunc(ctx, func() { time.AfterFunc(flushTime, cancel) })
			if b.Throttle != nil && ctx.Err() == nil {
				b.Throttle.Wait(ctx)
			}
			b.send(sending, events)
			stop()
			cancel()
		}
	}
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	for len(b.queue) > 0 {
		var events [][]byte
		for len(b.queue) > 0 && len(events) < b.MaxSize {
			events = append(events, <-b.queue)
		}
		b.send(rest, events)
	}
	return nil
}

func (b *Batch) send(ctx context.Context, events [][]byte) {
	var size int64
	for _, e := range events {
		size += int64(len(e))
	}
	defer b.kept.Add(-size)
	for _, part := range parts(events, b.MaxBytes) {
		if err := b.Sender.Send(ctx, part); err != nil {
			b.Metrics.Lost(b.Sender.Name(), len(part))
			if b.Report != nil {
				b.Report(err)
			}
		}
	}
}

// collect waits for an event, and then a while for others.
func (b *Batch) collect(ctx context.Context) [][]byte {
	var events [][]byte
	select {
	case e := <-b.queue:
		events = append(events, e)
	case <-ctx.Done():
		return nil
	}
	if b.MaxWait <= 0 {
		return events
	}
	timer := time.NewTimer(b.MaxWait)
	defer timer.Stop()
	for len(events) < b.MaxSize {
		select {
		case e := <-b.queue:
			events = append(events, e)
		case <-timer.C:
			return events
		case <-ctx.Done():
			return events
		}
	}
	return events
}

// Throttle spaces batches out: a burst at once, then rate a second.
type Throttle struct {
	Rate  float64
	Burst int

	tokens float64
	last   time.Time
}

// Wait returns when the next batch may go, or ctx ends.
func (t *Throttle) Wait(ctx context.Context) {
	now := time.Now()
	if t.last.IsZero() {
		t.tokens = float64(t.Burst)
	} else {
		t.tokens = min(float64(t.Burst), t.tokens+now.Sub(t.last).Seconds()*t.Rate)
	}
	t.last = now
	t.tokens--
	if t.tokens >= 0 || t.Rate <= 0 {
		return
	}
	select {
	case <-time.After(time.Duration(-t.tokens / t.Rate * float64(time.Second))):
	case <-ctx.Done():
	}
}
