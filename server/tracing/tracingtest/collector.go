// Package tracingtest provides an OpenTelemetry collector for tests.
package tracingtest

import (
	"context"
	"encoding/hex"
	"net"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Collector keeps the spans that it is sent.
type Collector struct {
	collector.UnimplementedTraceServiceServer
	Address string

	mu    sync.Mutex
	spans []*tracev1.Span
	held  sync.RWMutex // while it is, nothing is answered
}

// Hold makes senders of spans wait until release is called.
func (c *Collector) Hold() (release func()) {
	c.held.Lock()
	return c.held.Unlock
}

// Start runs a collector until the test ends.
func Start(t testing.TB) *Collector {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{Address: listener.Addr().String()}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Errorf("the collector ended with %v", err)
		}
	})
	return c
}

// Export implements the service.
func (c *Collector) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.held.RLock()
	defer c.held.RUnlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.ResourceSpans {
		for _, in := range of.ScopeSpans {
			c.spans = append(c.spans, in.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// Span is a received span.
type Span struct {
	Name, Trace, ID string
	Parent          string // the name of the span above; "" for the first
	Links           []string
	Texts           map[string]string
	Failed          bool
}

// Spans returns the spans of the request that has an attribute, with all descendants.
func (c *Collector) Spans(key, value string) []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	names, traces := map[string]string{}, map[string]bool{}
	for _, s := range c.spans {
		names[string(s.SpanId)] = s.Name
		for _, a := range s.Attributes {
			if a.Key == key && a.Value.GetStringValue() == value {
				traces[string(s.TraceId)] = true
			}
		}
	}
	var list []Span
	for _, s := range c.spans {
		if !traces[string(s.TraceId)] {
			continue
		}
		one := Span{
			Name: s.Name, Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Texts: map[string]string{},
			Failed: s.Status.GetCode() == tracev1.Status_STATUS_CODE_ERROR,
		}
		if len(s.ParentSpanId) > 0 {
			if one.Parent = names[string(s.ParentSpanId)]; one.Parent == "" {
				one.Parent = "unknown"
			}
		}
		for _, l := range s.Links {
			one.Links = append(one.Links, hex.EncodeToString(l.TraceId))
		}
		for _, a := range s.Attributes {
			one.Texts[a.Key] = a.Value.GetStringValue()
		}
		list = append(list, one)
	}
	return list
}

// Has reports whether there is a span of a name in a trace.
func (c *Collector) Has(name, trace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.spans, func(s *tracev1.Span) bool { return s.Name == name && hex.EncodeToString(s.TraceId) == trace })
}

// Len returns the number of received spans.
func (c *Collector) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.spans)
}
