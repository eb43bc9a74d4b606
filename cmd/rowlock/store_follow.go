package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/shown"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive/follow"
)

// followOptions are the flags of who keeps a folder of backups in step.
type followOptions struct {
	keep, baseEvery string
}

func (o *followOptions) addTo(f *pflag.FlagSet, prefix string) {
	f.StringVar(&o.keep, prefix+"keep", "7d", "how far back everything in the folder of backups can be restored, such as 36h or 7d")
	f.StringVar(&o.baseEvery, prefix+"base-every", "24h", "how often everything is written to it anew, besides each commit")
}

func (o *followOptions) config(prefix string) (c follow.Config, err error) {
	for _, v := range []struct {
		flag, text string
		to         *time.Duration
	}{{"keep", o.keep, &c.Keep}, {"base-every", o.baseEvery, &c.BaseEvery}} {
		if *v.to, err = daysOrLess(v.text); err != nil {
			return c, fmt.Errorf("--%s%s %q: want a duration above 0, such as 36h or 7d", prefix, v.flag, v.text)
		}
	}
	return c, nil
}

// daysOrLess reads a duration, which may be in days.
func daysOrLess(text string) (d time.Duration, err error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, e := strconv.ParseInt(days, 10, 32)
		d, err = time.Duration(n)*24*time.Hour, e
		if n > 36500 {
			err = errors.New("too long")
		}
	} else {
		d, err = time.ParseDuration(text)
	}
	if err == nil && d <= 0 {
		err = errors.New("not above 0")
	}
	return d, err
}

// follow is `store backup --follow`.
func (o *storeOptions) follow(ctx context.Context, dir string, flags *followOptions) error {
	cfg, err := flags.config("")
	if err != nil {
		return err
	}
	return o.with(ctx, asItIs, "", func(d sqlstore.Driver) error {
		cfg.Dir, cfg.Driver, cfg.Strict = dir, d, true
		cfg.Log = slog.New(slog.NewTextHandler(o.errOut, nil))
		if err := follow.New(cfg).Run(ctx); err != nil {
			return fmt.Errorf("backing up to %s: %w", dir, err)
		}
		return nil
	})
}

func listCommand(o *storeOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "list DIR",
		Aliases: []string{"status"},
		Short:   "Show what a folder of backups holds: bases, parts of the log, gaps",
		Long: `Show what a folder that --follow writes to holds: the runs of revisions without a gap,
in each the bases and the parts of the log, and what is wrong with any of them. The
newest part of the log is read whole, of the others the beginning and the end.
The exit code is 1 if something is damaged or missing.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := follow.List(args[0])
			if err != nil {
				return err
			}
			if err := o.answer(o.out, l, func(w io.Writer) { listTable(w, l) }); err != nil {
				return err
			}
			if len(l.Problems) > 0 {
				return fmt.Errorf("%s: problems found: %d", args[0], len(l.Problems))
			}
			return nil
		},
	}
}

func listTable(w io.Writer, l *follow.Listing) {
	fmt.Fprintf(w, "FOLDER\t%s (%s)\n", l.Dir, size(l.Bytes))
	fmt.Fprintf(w, "OF CLUSTER\t%s\n", shown.Safe(l.Cluster))
	for i, r := range l.Runs {
		if i > 0 {
			before := l.Runs[i-1]
			fmt.Fprintf(w, "GAP\tfrom revision %d of %s to revision %d of %s\n", before.Last, moment(before.Until), r.First, moment(r.From))
		}
		if r.From.IsZero() {
			fmt.Fprintf(w, "RUN %d\tcannot be restored: it has no base yet\n", r.Number)
		} else {
			fmt.Fprintf(w, "RUN %d\trevisions %d to %d, %s to %s\n", r.Number, r.First, r.Last, moment(r.From), moment(r.Until))
		}
		for _, b := range r.Bases {
			fmt.Fprintf(w, "  base\t%s  %s  taken %s\n", shown.Safe(b.File), size(b.Bytes), moment(b.Taken))
		}
		for _, s := range r.Segments {
			fmt.Fprintf(w, "  log\t%s  %s  revisions %d to %d, %s to %s\n", shown.Safe(s.File), size(s.Bytes), s.First, s.Last, moment(s.Began), moment(s.Until))
		}
	}
	for _, p := range l.Problems {
		fmt.Fprintf(w, "PROBLEM\t%s\n", shown.Safe(p))
	}
}
