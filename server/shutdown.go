package server

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// drain ends serving without breaking anybody's request: readyz turns red, the
// server goes on for the delay that load balancers need, then watches end, no new
// connections are taken and what is under way finishes.
func (s *Server) drain(hs *http.Server, served <-chan error) error {
	s.cfg.Log.Info("draining")
	s.Health.Drain()
	if s.cfg.ShutdownDelay > 0 {
		time.Sleep(s.cfg.ShutdownDelay)
	}
	s.endWatches()
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.ShutdownGrace)
	defer cancel()
	err := hs.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, hs.Close())
	}
	<-served
	return err
}

// quietLog brings what net/http has to say into the server's log, at a level where
// clients that hang up do not matter.
func quietLog(to *slog.Logger) *log.Logger { return log.New(quiet{to}, "", 0) }

type quiet struct{ to *slog.Logger }

func (q quiet) Write(p []byte) (int, error) {
	q.to.Debug("http server", "message", strings.TrimSpace(string(p)))
	return len(p), nil
}
