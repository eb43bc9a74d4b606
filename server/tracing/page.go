package tracing

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// maxLinks bounds with how many commits a page is linked.
const maxLinks = 32

// Page begins the span of a page of changes that the cache is about to publish. commits are the traced
// commits among its changes: a page that has any is traced too, and linked with them. One that has none, such
// as writes of other servers, is sampled by the rate. It is the first span of a trace of its own, because no
// single request causes it.
func (t *Tracer) Page(commits []*Span) Span {
	if len(commits) == 0 && !t.Sample() || t == nil || t.provider == nil {
		return Span{}
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal), trace.WithNewRoot()}
	commits = commits[:min(len(commits), maxLinks)]
	for _, c := range commits {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: c.span.SpanContext()}))
	}
	_, span := t.tracer.Start(context.Background(), "feed", options...)
	for _, c := range commits {
		c.span.AddLink(trace.Link{SpanContext: span.SpanContext()})
	}
	return Span{span}
}
