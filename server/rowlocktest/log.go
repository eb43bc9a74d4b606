package rowlocktest

import (
	"bytes"
	"sync"
	"testing"
)

// maxLog bounds the log of a server; the oldest part is dropped.
const maxLog = 256 << 10

// log keeps the log of a server.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
	cut  bool
}

// Write implements io.Writer.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len() > maxLog {
		rest := bytes.Clone(l.text.Bytes()[l.text.Len()/2:])
		l.text.Reset()
		l.text.Write(rest)
		l.cut = true
	}
	return l.text.Write(p)
}

// print prints the log if the test has failed.
func (l *log) print(t testing.TB) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.Failed() || l.text.Len() == 0 {
		return
	}
	what := "the server's log"
	if l.cut {
		what = "the end of the server's log"
	}
	t.Logf("%s:\n%s", what, l.text.String())
}
