//go:build unix

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

func imports() []Fault {
	return []Fault{{Name: "import", What: "an operator exports everything in the form of kine, and imports it into another database of the same disk or PostgreSQL", Often: 1, run: func(ctx context.Context, e *env) outcome {
		o := outcome{what: "an export in the form of kine, and an import of it", server: -1}
		wrong, err := e.moves(context.WithoutCancel(ctx))
		o.wrong, o.err = text(wrong), err
		return o
	}}}
}

// moves exports all objects, imports them into another database, and records the content as lists, which must not be older than any
// revision that a client had seen. wrong is a command that failed; err an error that breaks no promise.
func (e *env) moves(ctx context.Context) (wrong, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	dir, err := os.MkdirTemp(e.c.Dir(), "import-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	target, drop, err := e.c.NewDatabase(ctx)
	if err != nil {
		return nil, fmt.Errorf("making another database: %w", err)
	}
	defer func() {
		if e := drop(); err == nil {
			err = e
		}
	}()
	file := filepath.Join(dir, "kine.db")
	call := e.rec.Now()
	out, err := e.c.Command(ctx, append([]string{"export", "kine", "sqlite:" + file, "--store", e.c.StoreURL(), "--output", "json"}, e.c.Keys()...)...)
	if err != nil {
		return err, nil
	}
	done := e.rec.Now()
	var answer struct{ Revision uint64 }
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Revision == 0 {
		return fmt.Errorf("an export says %q, and not its revision (%v)", out, err), nil
	}
	if _, err := e.c.Command(ctx, "import", "kine+sqlite:"+file, "--store", target, "--spool", filepath.Join(dir, "spool")); err != nil {
		return err, nil
	}
	if _, err := e.c.Store(ctx, "verify", "--store", target); err != nil {
		return err, nil
	}
	_, rows, err := e.c.Content(ctx, target, e.ours)
	if err != nil {
		return nil, fmt.Errorf("reading an imported database: %w", err)
	}
	e.shown("import", call, done, answer.Revision, rows)
	return nil, nil
}

// shown records what a copy of the database has of the traffic as lists of a version.
func (e *env) shown(client string, call, done time.Duration, version uint64, rows []history.Row) {
	e.record(history.List{Client: client, Match: history.Latest, Call: call, Return: done}, version, rows)
}

// record records rows as lists of each scope of the traffic, like another one.
func (e *env) record(like history.List, version uint64, rows []history.Row) {
	scopes := map[history.Scope][]history.Item{}
	for _, r := range rows {
		if r.State != nil {
			scopes[r.Key.Scope()] = append(scopes[r.Key.Scope()], history.Item{Name: r.Key.Name, State: *r.State})
		}
	}
	for _, scope := range e.scopes { // also those that are empty in the copy
		l := like
		l.Server, l.Scope, l.Outcome, l.Pages = -1, scope, history.OK, []history.Page{{Version: version, Items: scopes[scope]}}
		e.rec.Add(&l)
	}
}
