package telemetry

import (
	"errors"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
	"github.com/rowlock/rowlock/server/egress"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/tracing"
	"github.com/rowlock/rowlock/server/tracing/otlp"
)

// TracingFlags are the flags of traces.
type TracingFlags struct{ path string }

func (o *TracingFlags) AddTo(f *pflag.FlagSet) {
	f.StringVar(&o.path, "tracing-config-file", "", "TracingConfiguration file: the OpenTelemetry collector, and the sampling rate")
}

// Build makes the tracer; nil if there are no traces. The caller closes it.
func (o *TracingFlags) Build(v release.Version, gate func(string) bool, address string, dial egress.Dial, log *slog.Logger) (*tracing.Tracer, error) {
	if o.path == "" {
		return nil, nil
	}
	if !gate("APIServerTracing") {
		return nil, errors.New("APIServerTracing feature is not enabled, but tracing config file was provided")
	}
	c, err := tracing.Load(o.path, v.Has(release.NewerConfigurations))
	if err != nil {
		return nil, flagfile.New("--tracing-config-file", o.path).Wrap(err)
	}
	return tracing.New(c, tracing.Settings{ServerID: program.ServerID(address), Exporter: otlp.Through(dial), Log: log})
}

// CloseTracer exports the last traces.
func CloseTracer(t *tracing.Tracer, log *slog.Logger) {
	if err := t.Close(); err != nil {
		log.Warn("the last traces could not be sent", "error", err)
	}
}
