package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// exhausted is a listener that fails for want of file descriptors while none are free.
type exhausted struct {
	net.Listener
	free bool
}

func (e *exhausted) Accept() (net.Conn, error) {
	if e.free {
		return nil, nil
	}
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

// TestAcceptingSaysThatItIsStuck: a server without free file descriptors logs that once, with what to do, and when it is over.
func TestAcceptingSaysThatItIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		inner, counted := &exhausted{free: true}, 0
		a := &accepting{Listener: inner, log: slog.New(slog.NewTextHandler(&log, nil)), failed: func() { counted++ }}
		for round := range 3 { // the second and the third within a minute
			if _, err := a.Accept(); err != nil || a.acceptError() != nil {
				t.Fatalf("round %d: %v, %v", round, err, a.acceptError())
			}
			inner.free = false
			for range 10 {
				if _, err := a.Accept(); !errors.Is(err, syscall.EMFILE) {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			if err := a.acceptError(); err == nil || !strings.Contains(err.Error(), "10s") || !strings.Contains(err.Error(), "too many open files") {
				t.Errorf("round %d: the check says %v", round, err)
			}
			inner.free = true
		}
		if _, err := a.Accept(); err != nil || a.acceptError() != nil {
			t.Errorf("at the end: %v, %v", err, a.acceptError())
		}
		if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "LimitNOFILE") || !strings.Contains(text, "accepted again") || counted != 30 {
			t.Errorf("%d failures are counted, and the log says\n%s", counted, text)
		}
	})
}
