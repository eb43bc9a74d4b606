package main

import (
	"errors"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/server/egress"
	"github.com/rowlock/rowlock/server/tracing"
	"github.com/rowlock/rowlock/server/tracing/otlp"
)

// tracingOptions are the flags that say who is told how long requests take.
type tracingOptions struct{ path string }

func (o *tracingOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.path, "tracing-config-file", "", "file that says which OpenTelemetry collector is sent traces, and of how many requests (a TracingConfiguration)")
}

// build makes what traces requests; nil where none are to be. The caller closes it.
func (o *tracingOptions) build(gate func(string) bool, address string, dial egress.Dial, log *slog.Logger) (*tracing.Tracer, error) {
	if o.path == "" {
		return nil, nil
	}
	if !gate("APIServerTracing") {
		return nil, errors.New("APIServerTracing feature is not enabled, but tracing config file was provided")
	}
	c, err := tracing.Load(o.path)
	if err != nil {
		return nil, source{"--tracing-config-file", o.path}.failed(err)
	}
	return tracing.New(c, tracing.Settings{ServerID: idHash(address), Exporter: otlp.Through(dial), Log: log})
}

// closeTracer sends the last traces.
func closeTracer(t *tracing.Tracer, log *slog.Logger) {
	if err := t.Close(); err != nil {
		log.Warn("the last traces could not be sent", "error", err)
	}
}
