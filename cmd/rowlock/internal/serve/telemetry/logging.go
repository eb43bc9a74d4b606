package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// NewLog makes the logger of the process.
func NewLog(w io.Writer, format string, v *Verbosity) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: &v.level}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("--log-format: %q is neither text nor json", format)
}
