package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/progress"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive/follow"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// folderFlags are the flags of restore that apply to folders.
type folderFlags struct {
	to      string
	skip    int64
	scratch string
}

// target parses --to.
func (r *folderFlags) target() (t follow.Target, err error) {
	if r.to == "" {
		return t, nil
	}
	if t.Revision, err = strconv.ParseInt(r.to, 10, 64); err == nil && t.Revision > 0 {
		return t, nil
	}
	t.Revision = 0
	if t.Time, err = time.Parse(time.RFC3339Nano, r.to); err != nil || t.Time.IsZero() {
		return t, fmt.Errorf("--to %q: want a revision, or a time such as %s", r.to, time.Date(2026, 11, 23, 14, 5, 0, 0, time.UTC).Format(time.RFC3339))
	}
	return t, nil
}

// restoreFolder is `store restore DIR`.
func restoreFolder(ctx context.Context, o *database.Options, dir string, r *folderFlags) error {
	target, err := r.target()
	if err != nil {
		return err
	}
	if r.skip < 0 {
		return fmt.Errorf("--skip-revisions %d: want 0 or more", r.skip)
	}
	plan, err := restorePlan(dir, target)
	if err != nil {
		return err
	}
	return o.With(ctx, database.Migrate, "the database is as empty as before", func(d sqlstore.Driver) error {
		p := progress.New(o.ErrOut, "restoring", "bytes")
		done, err := follow.Restore(ctx, d, plan, follow.Options{Skip: r.skip, Scratch: r.scratch, Progress: p.Of})
		p.End()
		if errors.Is(err, sqlstore.ErrNotEmpty) {
			return errors.New("--store: the database is in use: a backup is restored into an empty one")
		}
		if err != nil {
			return fmt.Errorf("restoring %s: %w", dir, err)
		}
		if err := o.Answer(o.Out, done, func(w io.Writer) { restoredTable(w, dir, &done) }); err != nil {
			return err
		}
		return incompleteError(dir, r.to, &done)
	})
}

// incompleteError is the error of a restore of an older state than the newest.
func incompleteError(dir, to string, r *follow.Restored) error {
	if to != "" || r.Newest {
		return nil
	}
	return fmt.Errorf("%s: revision %d was restored, and more is in the folder that cannot be: `rowlock store backup list %s` says why. If the older state is what you want, ask for it by --to %d", dir, r.Revision, dir, r.Revision)
}

func restorePlan(dir string, target follow.Target) (*follow.Plan, error) {
	l, err := follow.List(dir)
	if err != nil {
		return nil, err
	}
	return l.Plan(target)
}

func restoredTable(w io.Writer, dir string, r *follow.Restored) {
	fmt.Fprintf(w, "RESTORED FROM\t%s\n", dir)
	fmt.Fprintf(w, "OF CLUSTER\t%s\n", r.ClusterID)
	fmt.Fprintf(w, "AT REVISION\t%d\n", r.Revision)
	if r.Newest {
		fmt.Fprintf(w, "NEWEST\tyes: with everything until %s\n", r.Until.Format(time.RFC3339Nano))
	} else {
		fmt.Fprintf(w, "NEWEST\tno: more is there, until %s\n", r.Until.Format(time.RFC3339Nano))
	}
	if r.Floor > r.Revision {
		fmt.Fprintf(w, "GOES ON AT\t%d\n", r.Floor+1)
	}
	fmt.Fprintf(w, "BASE\t%s\n", r.Base)
	fmt.Fprintf(w, "COMMITS\t%d\n", r.Commits)
	fmt.Fprintf(w, "OBJECTS\t%d\n", r.Objects)
}

// latestAnswer is the result of --verify-latest.
type latestAnswer struct {
	Folder   string             `json:"folder"`
	Restored follow.Restored    `json:"restored"`
	Problems []string           `json:"problems"` // of the folder
	Verified *upkeep.Report     `json:"verified"`
	Compared *follow.Comparison `json:"compared"` // null: no --store was given
	Behind   *int64             `json:"behind"`   // further revisions that the database has
	Took     string             `json:"took"`
	OK       bool               `json:"ok"`
}

// verifyLatest runs `store restore --verify-latest`; compare is true with --store.
func verifyLatest(ctx context.Context, o *database.Options, dir string, r *folderFlags, compare bool) (err error) {
	if r.to != "" || r.skip != 0 {
		return errors.New("--verify-latest: restores the newest state, and nothing stays of it: leave out --to and --skip-revisions")
	}
	began := time.Now()
	l, err := follow.List(dir)
	if err != nil {
		return err
	}
	a := latestAnswer{Folder: dir, Problems: l.Problems}
	plan, err := l.Plan(follow.Target{})
	if err != nil {
		return err
	}
	scratch, done, err := follow.VerifyScratch(r.scratch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	d, err := sqlite.Open(ctx, filepath.Join(scratch, "restored.db"), sqlite.Config{Unsynced: true})
	if err != nil {
		return err
	}
	defer d.Close()
	p := progress.New(o.ErrOut, "restoring", "bytes")
	a.Restored, err = follow.Restore(ctx, d, plan, follow.Options{Scratch: scratch, Progress: p.Of})
	p.End()
	if err != nil {
		return database.Explain(ctx, fmt.Errorf("restoring %s: %w", dir, err), "nothing was changed")
	}
	err = decrypting(ctx, o, func(decode decoder) error {
		a.Verified, err = verify(ctx, o, d, decode)
		return err
	})
	if err != nil {
		return database.Explain(ctx, err, "nothing was changed")
	}
	if a.Verified.Problems == nil {
		a.Verified.Problems = []upkeep.Problem{}
	}
	if compare {
		if err := compareLive(ctx, o, d, &a); err != nil {
			return err
		}
	}
	a.Took = time.Since(began).Round(time.Millisecond).String()
	a.OK = a.Restored.Newest && a.Verified.Count == 0 && len(a.Problems) == 0 && (a.Compared == nil || a.Compared.Count == 0)
	if err := o.Answer(o.Out, a, a.table); err != nil {
		return err
	}
	if !a.OK {
		return fmt.Errorf("%s: the newest state in it is not right, or parts are damaged", dir)
	}
	return nil
}

// compareLive compares the restored database with the live one.
func compareLive(ctx context.Context, o *database.Options, restored sqlstore.Driver, a *latestAnswer) error {
	return o.With(ctx, database.AsIs, "nothing was changed", func(live sqlstore.Driver) error {
		b, err := live.Bounds(ctx)
		if err != nil {
			return err
		}
		a.Behind = new(b.Head - a.Restored.Revision)
		c, err := follow.Compare(ctx, restored, live, a.Restored.Revision)
		if _, ok := errors.AsType[*sqlstore.CompactedError](err); ok {
			return fmt.Errorf("--store: the database no longer has revision %d, the newest in %s: the backup is not followed any more, or was not for longer than history is kept", a.Restored.Revision, a.Folder)
		}
		a.Compared = &c
		return err
	})
}

func (a latestAnswer) table(w io.Writer) {
	restoredTable(w, a.Folder, &a.Restored)
	for _, p := range a.Problems {
		fmt.Fprintf(w, "PROBLEM\t%s\n", p)
	}
	for _, p := range a.Verified.Problems {
		fmt.Fprintf(w, "PROBLEM\t%s at %d: %s\n", p.Key, p.Revision, p.Reason)
	}
	if a.Compared != nil {
		for _, d := range a.Compared.Differences {
			fmt.Fprintf(w, "DIFFERENCE\t%s %s\n", d.Key, d.Reason)
		}
		fmt.Fprintf(w, "COMPARED\t%d objects, %d differences; the database is %d revisions ahead by now\n", a.Compared.Objects, a.Compared.Count, *a.Behind)
	}
	fmt.Fprintf(w, "VERIFIED\t%d objects, %d problems, in %s\n", a.Verified.Objects, a.Verified.Count, a.Took)
}
