package sqlstore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// paced is a driver of which only is asked whether writers wait.
type paced struct{ Driver }

func (paced) TrimsBeside() bool { return false }

// TestPackingKeepsUp: on a machine where each commit is slow, packing still moves more rows in a
// second than 1,000 nodes write, and rests for most of the time that writers wait.
func TestPackingKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces, reading, commit = 200, 10 * time.Millisecond, 20 * time.Millisecond
		began, rows, done := time.Now(), 0, 0
		err := inPieces(context.Background(), paced{}, restWaited, leastPack, func(limit int) (bool, time.Duration, error) {
			time.Sleep(reading + commit)
			rows, done = rows+limit, done+1
			return done < pieces, commit, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		if rate := float64(rows) / took.Seconds(); rate < 500 {
			t.Errorf("%.0f rows a second", rate)
		}
		if share := float64(pieces*commit) / float64(took); share > 0.25 {
			t.Errorf("writers wait for %.0f%% of the time", 100*share)
		}
	})
}
