// Package otlp sends spans to an OpenTelemetry collector over gRPC (OTLP).
//
// It is separate from package tracing, so that programs which embed a server and send no traces
// compile neither the protocol nor gRPC. An unreachable collector costs only the queue of
// package tracing.
package otlp

import (
	"context"
	"net"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
)

// Through returns the function that makes the exporter of a tracing.Settings. Its collector listens at
// endpoint, a gRPC target, or at localhost:4317 if that is nil. dial reaches a collector that is not on this
// server's network; nil dials directly. It does not connect before there is a span to export.
func Through(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(endpoint *string) (sdktrace.SpanExporter, error) {
	return func(endpoint *string) (sdktrace.SpanExporter, error) {
		options := []otlptracegrpc.Option{otlptracegrpc.WithInsecure()}
		if endpoint != nil {
			options = append(options, otlptracegrpc.WithEndpoint(*endpoint))
		}
		if dial != nil {
			options = append(options, otlptracegrpc.WithDialOption(grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return dial(ctx, "tcp", address)
			})))
		}
		return otlptracegrpc.New(context.Background(), options...)
	}
}
