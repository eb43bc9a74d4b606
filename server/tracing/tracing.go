// Package tracing exports the outcome of requests, and how long
// their parts took, to an OpenTelemetry collector.
//
// The server decides once for each request whether it is traced, when it arrives, by the sampling rate that
// the operator chose and nothing else: the client's trace context becomes a
// link, so no client can have its requests traced, nor prevent it. An untraced request
// allocates nothing: Start finds no span in its context and returns the zero Span,
// whose methods do nothing.
//
// Cost: the queue holds 2048 spans and drops further ones, each with
// the few attributes that callers set, cut to maxText bytes. Clients cause spans for
// no more than the sampled share of their requests. Attributes hold no query, no header but
// the User-Agent, and nothing of a body.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	scope      = "github.com/rowlock/rowlock/server/tracing"
	maxText    = 1024            // bytes of an attribute
	lastWords  = 5 * time.Second // for sending the queue when the server ends
	traceState = "Tracestate"
	traceID    = "Traceparent"
)

// Tracer decides which requests are traced, and exports their spans. A nil one
// traces nothing. It is safe for concurrent use.
type Tracer struct {
	rate     uint32 // of a million
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// Settings are the parameters of a Tracer in addition to its configuration.
type Settings struct {
	ServerID string // of this server within its cluster
	// Exporter makes the exporter for a collector at an endpoint (nil: the default); see package otlp. It is
	// called if requests are traced, and must not wait.
	Exporter func(endpoint *string) (sdktrace.SpanExporter, error)
	Log      *slog.Logger
}

// New makes a Tracer. Errors: no exporter was given though one is needed, or it could not be made.
func New(c *Config, s Settings) (*Tracer, error) {
	t := &Tracer{}
	if c.SamplingRatePerMillion == nil || *c.SamplingRatePerMillion <= 0 {
		return t, nil
	}
	t.rate = uint32(*c.SamplingRatePerMillion)
	if s.Exporter == nil {
		return nil, errors.New("tracing: nothing sends spans")
	}
	exporter, err := s.Exporter(c.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	otel.SetErrorHandler(unsent(s.Log))
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // Request has decided
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "apiserver"), attribute.String("service.instance.id", s.ServerID),
		)),
	)
	t.tracer = t.provider.Tracer(scope)
	return t, nil
}

// unsent logs that spans could not be sent, once a minute at most: they are sent every five
// seconds, and a collector may be away for long.
func unsent(log *slog.Logger) otel.ErrorHandlerFunc {
	var next atomic.Int64 // in nanoseconds
	return func(err error) {
		now := time.Now()
		if due := next.Load(); now.UnixNano() >= due && next.CompareAndSwap(due, now.Add(time.Minute).UnixNano()) {
			log.Warn("traces could not be sent", "error", err)
		}
	}
}

// Close sends the queued spans, for a few seconds at most.
func (t *Tracer) Close() error {
	if t == nil || t.provider == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// Sample reports whether the next request is traced.
func (t *Tracer) Sample() bool {
	return t != nil && t.provider != nil && (t.rate >= million || rand.Uint32N(million) < t.rate)
}

// Request begins the first span of a request that is sampled. The trace that the client
// names is linked and not continued.
func (t *Tracer) Request(r *http.Request, name string) (context.Context, Span) {
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer), trace.WithNewRoot()}
	theirs := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header)))
	if theirs.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: theirs.WithTraceState(trace.TraceState{})}))
	}
	ctx, span := t.tracer.Start(r.Context(), strings.Clone(name), options...)
	return ctx, Span{span}
}

// Inject adds headers to a request that tell another server to which trace the request belongs, or that it is
// not traced. The client's trace context is not passed on.
func (t *Tracer) Inject(ctx context.Context, h http.Header) {
	if t == nil {
		return
	}
	h.Del(traceState)
	if trace.SpanFromContext(ctx).IsRecording() {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
		return
	}
	h.Set(traceID, fmt.Sprintf("00-%016x%016x-%016x-00", rand.Uint64(), rand.Uint64()|1, rand.Uint64()|1))
}

// Span is a part of a request, from Start to End. The zero Span is none.
type Span struct{ span trace.Span }

// Start begins a child span of that in ctx. Without one, it does nothing.
func Start(ctx context.Context, name string) (context.Context, Span) {
	above := trace.SpanFromContext(ctx)
	if !above.IsRecording() {
		return ctx, Span{}
	}
	ctx, span := above.TracerProvider().Tracer(scope).Start(ctx, name)
	return ctx, Span{span}
}

// On reports whether there is a span: callers make values for a span only then.
func (s Span) On() bool { return s.span != nil }

// Text sets an attribute, to a copy: a span that waits for the collector keeps no request in memory, of whose texts value may
// be a part.
func (s Span) Text(key, value string) {
	if s.span == nil || value == "" {
		return
	}
	if len(value) > maxText {
		value = strings.ToValidUTF8(value[:maxText], "")
	}
	s.span.SetAttributes(attribute.String(key, strings.Clone(value)))
}

// Number sets an attribute.
func (s Span) Number(key string, value int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(key, value))
	}
}

// Fail marks this part as failed, without the error: errors may quote clients.
func (s Span) Fail() {
	if s.span != nil {
		s.span.SetStatus(codes.Error, "")
	}
}

// End ends the span.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}
