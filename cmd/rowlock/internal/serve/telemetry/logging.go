package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// NewLog makes the logger of the process. Verbosity 0 shows warnings and messages for the operator; 2 and above
// every request; 4 and above debug messages.
func NewLog(w io.Writer, format string, verbosity int) (*slog.Logger, error) {
	level := slog.LevelWarn
	switch {
	case verbosity >= 4:
		level = slog.LevelDebug
	case verbosity >= 1:
		level = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("--log-format: %q is neither text nor json", format)
}
