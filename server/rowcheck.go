package server

import (
	"context"
	"time"
)

// rowsShare is the share of one processor that comparing the table with what should be in it may take.
const rowsShare = 0.1

// checkRows compares the table with its indexes once, beside everything else: the start has compared no more than how many
// rows the two have. Where objects came from the cache file, the checksums of their rows come first, which the start did
// not look at. What differs is a corrupt object from then on.
func (s *Server) checkRows(ctx context.Context) error {
	loaded, began := s.cacheFile.loaded.Load(), time.Now()
	values := loaded != nil && loaded.FromFile > 0
	damaged, err := s.Cache.CheckRows(ctx, s.cfg.Store, values, rowsShare)
	for _, c := range damaged[:min(len(damaged), mostLogged)] {
		s.cfg.Log.Error("an object in the store cannot be read", "key", c.Key, "revision", c.Revision, "error", c.Reason)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.own.unchecked.Store(&err)
		s.cfg.Log.Error("the table could not be compared with its indexes; run `rowlock store verify`", "error", err)
	default:
		s.cfg.Log.Debug("compared the table with its indexes", "objects that differ", len(damaged), "took", time.Since(began).Round(time.Millisecond))
	}
	return nil
}
