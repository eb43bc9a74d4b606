package storetest

import (
	"bytes"
	"log/slog"
	"sync"
)

// Log is a log that may be read while it is written.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Logger returns a logger that writes to it.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
