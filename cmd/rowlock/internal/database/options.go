package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/progress"
	"github.com/rowlock/rowlock/sqlstore"
)

// Options are the flags and outputs that all commands on a database share.
type Options struct {
	DataDir, Store string
	Output         string
	Encryption     string // file with the keys
	Out, ErrOut    io.Writer
}

// AddTo declares the flags for a command and its subcommands, and sets where they write to.
func (o *Options) AddTo(cmd *cobra.Command) {
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		o.Out, o.ErrOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
		if o.Output != "table" && o.Output != "json" {
			return fmt.Errorf("--output %q: want table or json", o.Output)
		}
		return nil
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.DataDir, "data-dir", "./rowlock-data", "folder of the server")
	f.StringVar(&o.Store, "store", "", "database: sqlite:FILE or postgres://USER@HOST/DATABASE (default sqlite:<data-dir>/rowlock.db)")
	f.StringVar(&o.Encryption, EncryptionFlag, "", "encryption configuration of the servers, for verify, repair, export and rewrite")
	f.StringVar(&o.Output, "output", "table", "output format: table or json")
}

func (o *Options) URL() string {
	if o.Store != "" {
		return o.Store
	}
	return "sqlite:" + filepath.Join(o.DataDir, "rowlock.db")
}

// With opens the database, calls fn with it and closes it. left is the state that an interruption leaves, for the
// error.
func (o *Options) With(ctx context.Context, how Mode, left string, fn func(sqlstore.Driver) error) error {
	d, err := Open(ctx, o.URL(), how)
	if err != nil {
		return Explain(ctx, err, left)
	}
	err = fn(d)
	if e := d.Close(); err == nil && e != nil {
		err = fmt.Errorf("closing the store: %w", e)
	}
	return Explain(ctx, err, left)
}

// Explain replaces errors of the driver by errors that an operator can act on.
func Explain(ctx context.Context, err error, left string) error {
	var schema *sqlstore.SchemaError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sqlstore.ErrUncertain):
		return fmt.Errorf("--store: it is unknown whether the database has what was written; check with `rowlock store status` before the command is run again: %w", err)
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: %s", left)
	case errors.As(err, &schema) && schema.Found == 0:
		return errors.New("--store: the database is empty: no server has used it yet (fill it with `rowlock store restore`, or prepare it with `rowlock store migrate`)")
	case errors.As(err, &schema) && schema.Found <= schema.Known:
		return fmt.Errorf("--store: the database has schema %d, this binary needs %d: run `rowlock store migrate`", schema.Found, schema.Known)
	case errors.As(err, &schema):
		return fmt.Errorf("--store: the database has schema %d and holds what only versions that know migration %d can read, this binary knows up to %d: use the newer version of rowlock that wrote it, or undo that with it (docs/operations.md, Upgrades)", schema.Found, schema.Needs, schema.Known)
	}
	return err
}

// Answer prints a result: v as JSON, or the table that table writes.
func (o *Options) Answer(out io.Writer, v any, table func(w io.Writer)) error {
	if o.Output == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	table(w)
	return w.Flush()
}

// Progress shows how many rows are done.
func (o *Options) Progress(what string) *progress.Line {
	return progress.New(o.ErrOut, what, "rows")
}

// Rows returns the progress of work on the rows of a database, with history if that is wanted. Its total is an
// estimate.
func (o *Options) Rows(ctx context.Context, d sqlstore.Driver, what string, history bool) (*progress.Line, error) {
	stats, err := d.Stats(ctx)
	if err != nil {
		return nil, err
	}
	total := stats.LiveRows
	if history {
		total += stats.HistoryRows + stats.PackedRows
	}
	p := o.Progress(what)
	p.Total(total)
	return p, nil
}

// File returns the progress of reading a file.
func (o *Options) File(what string, f *os.File) *progress.Line {
	p := progress.New(o.ErrOut, what, "bytes")
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		p.Total(info.Size())
	}
	return p
}

// Log writes messages for the operator to standard error.
func (o *Options) Log() *slog.Logger { return slog.New(slog.NewTextHandler(o.ErrOut, nil)) }
