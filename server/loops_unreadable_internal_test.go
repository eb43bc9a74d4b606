package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/server/cache"
)

// TestLoopsAtUnreadableObjects: a loop that comes upon an object that cannot be read is logged and started again, and ends neither
// itself nor the others.
func TestLoopsAtUnreadableObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s, runs, failed := &Server{cfg: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}}, 0, errors.New("it ends")
		group, ctx := errgroup.WithContext(t.Context())
		s.start(ctx, group, []Loop{{Name: "tested", Run: func(context.Context) error {
			if runs++; runs < 3 {
				panic(&cache.Unreadable{})
			}
			return failed
		}}})
		if err := group.Wait(); err != failed || runs != 3 || strings.Count(log.String(), "name=tested") != 2 {
			t.Errorf("after %d runs: %v; the log says %s", runs, err, log.String())
		}
	})
}
