package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/progress"
	"github.com/rowlock/rowlock/sqlstore"
)

// storeOptions are what all commands on a store share.
type storeOptions struct {
	dataDir, store string
	output         string
	encryption     string // file with the keys
	out, errOut    io.Writer
}

func storeCommand() *cobra.Command {
	o := &storeOptions{}
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Look after the database: status, compaction, checks, repair, backups",
		Long: `Look after the database. Every command works beside running servers, and may
be interrupted (Ctrl-C): what it did not finish leaves no trace.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o.addTo(cmd)
	cmd.AddCommand(
		statusCommand(o), migrateCommand(o), compactCommand(o), verifyCommand(o), repairCommand(o), rewriteCommand(o),
		backupCommand(o), restoreCommand(o), skipCommand(o), exportCommand(o),
	)
	return cmd
}

// addTo gives a command and those below it the flags, and what to write to.
func (o *storeOptions) addTo(cmd *cobra.Command) {
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		o.out, o.errOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
		if o.output != "table" && o.output != "json" {
			return fmt.Errorf("--output %q: want table or json", o.output)
		}
		return nil
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.dataDir, "data-dir", "./rowlock-data", "folder of the server")
	f.StringVar(&o.store, "store", "", "database: sqlite:FILE or postgres://USER@HOST/DATABASE (default sqlite:<data-dir>/rowlock.db)")
	f.StringVar(&o.encryption, encryptionFlag, "", "file of the servers that says how values are encrypted: for verify, repair, export and rewrite")
	f.StringVar(&o.output, "output", "table", "how to answer: table or json")
}

func (o *storeOptions) url() string {
	if o.store != "" {
		return o.store
	}
	return "sqlite:" + filepath.Join(o.dataDir, "rowlock.db")
}

// with lends the store to fn. left says what an interruption leaves behind.
func (o *storeOptions) with(ctx context.Context, how opening, left string, fn func(sqlstore.Driver) error) error {
	d, err := openStore(ctx, o.url(), how)
	if err != nil {
		return explain(ctx, err, left)
	}
	err = fn(d)
	if e := d.Close(); err == nil && e != nil {
		err = fmt.Errorf("closing the store: %w", e)
	}
	return explain(ctx, err, left)
}

// explain puts what an operator asked for, or can do, in place of what it looks
// like from inside.
func explain(ctx context.Context, err error, left string) error {
	var schema *sqlstore.SchemaError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: %s", left)
	case errors.As(err, &schema) && schema.Found == 0:
		return errors.New("--store: the database is empty: no server has used it yet (fill it with `rowlock store restore`, or prepare it with `rowlock store migrate`)")
	case errors.As(err, &schema) && schema.Found <= schema.Known:
		return fmt.Errorf("--store: the database has schema %d, this binary needs %d: run `rowlock store migrate`", schema.Found, schema.Known)
	case errors.As(err, &schema):
		return fmt.Errorf("--store: the database has schema %d, this binary knows up to %d: use the newer version of rowlock that wrote it", schema.Found, schema.Known)
	}
	return err
}

// answer prints a result: v as JSON, or what table writes.
func (o *storeOptions) answer(out io.Writer, v any, table func(w io.Writer)) error {
	if o.output == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	table(w)
	return w.Flush()
}

// progress shows how far work on rows is.
func (o *storeOptions) progress(what string) *progress.Line {
	return progress.New(o.errOut, what, "rows")
}

// rows is the progress of work on the rows of a store, of which there are about as many as it
// says: those of history too where they are wanted.
func (o *storeOptions) rows(ctx context.Context, d sqlstore.Driver, what string, history bool) (*progress.Line, error) {
	stats, err := d.Stats(ctx)
	if err != nil {
		return nil, err
	}
	total := stats.LiveRows
	if history {
		total += stats.HistoryRows + stats.PackedRows
	}
	p := o.progress(what)
	p.Total(total)
	return p, nil
}

// file is the progress of reading a file.
func (o *storeOptions) file(what string, f *os.File) *progress.Line {
	p := progress.New(o.errOut, what, "bytes")
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		p.Total(info.Size())
	}
	return p
}

// size is bytes for people.
func size(bytes int64) string {
	switch n := float64(bytes); {
	case bytes < 10_000:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 10_000_000:
		return fmt.Sprintf("%.1f KB", n/1e3)
	case bytes < 10_000_000_000:
		return fmt.Sprintf("%.1f MB", n/1e6)
	default:
		return fmt.Sprintf("%.1f GB", n/1e9)
	}
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
