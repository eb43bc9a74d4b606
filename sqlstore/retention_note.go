package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// LowerAfter is the time for which servers keep to the longer of two retentions after it was lowered, so
// that a start without the flag does not delete history that is still wanted.
const LowerAfter = 24 * time.Hour

// retentionNoteEvery is the interval at which the elapsed time is stored.
const retentionNoteEvery = 10 * time.Minute

// retentionNote is the note "retention" of a database: how long its history is kept, whichever server compacts. A
// lower retention waits for LowerAfter, measured in time during which some server led, independent of wall
// clocks.
type retentionNote struct {
	Kept   string        `json:"kept"`             // see ParseRetention
	Lower  string        `json:"lower,omitempty"`  // the retention that will replace it
	Waited time.Duration `json:"waited,omitempty"` // since Lower was requested
}

const retentionNoteName = "retention"

// retentionLeader decides which retention the leader enforces.
type retentionLeader struct {
	*Store
	text   string // of the note when it was last read or written
	stored retentionNote
	at     time.Duration // when that was, by Elapsed
	logged string        // the lower retention that was logged
}

// retention returns the present retention. Errors: those of the driver, and CorruptError of the note.
func (k *retentionLeader) retention(ctx context.Context) (Retention, error) {
	asked, now := k.cfg.RetentionByResource, k.cfg.Elapsed()
	text, err := k.driver.Note(ctx, retentionNoteName)
	if err != nil {
		return asked, err
	}
	if text != k.text || text == "" {
		k.text, k.stored, k.at = text, retentionNote{}, now
		if text != "" {
			if err := json.Unmarshal([]byte(text), &k.stored); err != nil {
				return asked, &CorruptError{Reason: fmt.Sprintf("kv_meta has a note on retention that cannot be read: %v", err)}
			}
		}
	}
	kept := asked
	if k.stored.Kept == "" {
		if kept, err = k.inferred(ctx, asked); err != nil {
			return asked, err
		}
		k.stored.Kept = kept.String()
	} else {
		if kept, err = ParseRetention(k.stored.Kept); err != nil {
			return asked, &CorruptError{Reason: fmt.Sprintf("kv_meta has a note on retention that cannot be read: %v", err)}
		}
	}
	lower := asked.below(kept)
	if len(lower) > 0 && !k.cfg.LowerNow {
		needed, err := k.needed(ctx, lower)
		if err != nil {
			return asked, err
		}
		if needed {
			return k.wait(ctx, asked, kept, now)
		}
	}
	if len(lower) > 0 {
		k.cfg.Log.Info("history is kept for less time from now on", "was", kept.String(), "retention", asked.String())
	}
	k.cfg.Observer.EffectiveRetention(asked, 0)
	return asked, k.note(ctx, retentionNote{Kept: asked.String()}, now)
}

// inferred returns the retention of a database without a note, such as one of an older version or a restored one: if it
// has packs, that of their rows.
func (k *retentionLeader) inferred(ctx context.Context, asked Retention) (Retention, error) {
	floors, err := k.driver.Floors(ctx)
	if err != nil || floors.Past == nil {
		return asked, err
	}
	since, ok, err := k.driver.Since(ctx, max(floors.start(""), 1))
	if err != nil || !ok {
		return asked, err
	}
	age := max(0, k.cfg.Clock().Sub(since)).Truncate(time.Hour) + time.Hour
	return asked.longest(Retention{Default: age}), nil
}

// needed reports whether there is history that was written under the longer of two retentions and that the lower
// one would delete.
func (k *retentionLeader) needed(ctx context.Context, names []string) (bool, error) {
	b, err := k.driver.Bounds(ctx)
	if err != nil {
		return false, err
	}
	floors, err := k.driver.Floors(ctx)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		floor := floors.Of(name)
		if name == "" {
			floor = floors.start(name)
		}
		if b.Head > floor {
			return true, nil
		}
	}
	return false, nil
}

// wait keeps the longer of each two retentions until the lower one has waited for long enough.
func (k *retentionLeader) wait(ctx context.Context, asked, kept Retention, now time.Duration) (Retention, error) {
	next := retentionNote{Kept: k.stored.Kept, Lower: asked.String()}
	if k.stored.Lower == next.Lower {
		next.Waited = k.stored.Waited + now - k.at
	}
	left := LowerAfter - next.Waited
	if left <= 0 {
		k.cfg.Log.Info("history is kept for less time from now on", "was", kept.String(), "retention", asked.String())
		k.cfg.Observer.EffectiveRetention(asked, 0)
		return asked, k.note(ctx, retentionNote{Kept: asked.String()}, now)
	}
	if k.logged != next.Lower {
		k.logged = next.Lower
		k.cfg.Log.Warn("history is kept for longer than --history-retention asks, because the retention was lowered: what the lower one does not cover is deleted after a day; set the longer one to keep that history, or --history-retention-lower-now to delete it at once",
			"kept", kept.String(), "retention", asked.String(), "deleted-in", left.Round(time.Minute).String())
	}
	both := asked.longest(kept)
	k.cfg.Observer.EffectiveRetention(both, left)
	if k.stored.Lower == next.Lower && now-k.at < retentionNoteEvery {
		return both, nil
	}
	return both, k.note(ctx, next, now)
}

// note stores a retentionNote unless it is stored already. If another server stored one in between, the next round reads
// that.
func (k *retentionLeader) note(ctx context.Context, p retentionNote, now time.Duration) error {
	b, err := json.Marshal(p)
	if err != nil || string(b) == k.text {
		return err
	}
	ok, err := k.driver.SetNote(ctx, retentionNoteName, k.text, string(b))
	if err == nil && ok {
		k.text, k.stored, k.at = string(b), p, now
	}
	return err
}
