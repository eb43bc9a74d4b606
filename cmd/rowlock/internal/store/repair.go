package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// damageAnswer is an unreadable object.
type damageAnswer struct {
	Key          string `json:"key"`
	Revision     int64  `json:"revision"`
	Reason       string `json:"reason,omitempty"` // empty: it can be read
	GoodRevision int64  `json:"goodRevision"`     // the revision that a rollback restores; 0: there is none
}

// repairAnswer is the result of a repair of one object, or of a dry run.
type repairAnswer struct {
	damageAnswer
	Action          string `json:"action"` // "delete" or "rollback"
	DryRun          bool   `json:"dryRun"`
	WrittenRevision int64  `json:"writtenRevision"` // 0: nothing was written
}

type repairOptions struct {
	listOnly      bool
	remove, back  string
	dryRun, force bool
}

func repairCommand(o *database.Options) *cobra.Command {
	r := &repairOptions{}
	cmd := &cobra.Command{
		Use:   "repair (--list | --delete KEY | --rollback KEY)",
		Short: "Find, delete or roll back objects that cannot be read",
		Long: `Find objects that cannot be read, and delete them or restore their last readable
revision: for objects that the API cannot delete, or when the API is down. KEY is a key
as --list prints it: RESOURCE/NAMESPACE/NAME, or RESOURCE/NAME without a namespace, as
in configmaps/default/settings or clusterroles.rbac.authorization.k8s.io/edit.

  --list      lists every object that cannot be read, with the reason and the
              revision that a rollback would restore.
  --delete    deletes the object despite finalizers. It does not delete dependents.
  --rollback  writes the newest readable state in the history (servers keep
              --history-retention of it) as a new revision.

Both write as servers do, in one transaction that fails if the object has changed
meanwhile. Servers may run: their watches receive the change, on PostgreSQL within
seconds. Authorization and admission do not apply. Readable objects are left unchanged
unless --force is given. Encrypted objects count as readable unless
--encryption-provider-config is given and does not decrypt them. Each repair is logged
to standard error.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			asked := 0
			for _, name := range []string{"list", "delete", "rollback"} {
				if cmd.Flags().Changed(name) {
					asked++
				}
			}
			if asked != 1 || cmd.Flags().Changed("list") && !r.listOnly {
				return errors.New("want one of --list, --delete KEY and --rollback KEY")
			}
			if r.listOnly {
				return decrypting(cmd.Context(), o, func(decode decoder) error { return r.list(cmd.Context(), o, decode) })
			}
			return decrypting(cmd.Context(), o, func(decode decoder) error { return r.repair(cmd.Context(), o, decode) })
		},
	}
	f := cmd.Flags()
	f.BoolVar(&r.listOnly, "list", false, "name the objects that cannot be read")
	f.StringVar(&r.remove, "delete", "", "delete the object of this key")
	f.StringVar(&r.back, "rollback", "", "put the last good revision of this key's object in its place")
	f.BoolVar(&r.dryRun, "dry-run", false, "print the result without changing anything")
	f.BoolVar(&r.force, "force", false, "do it to an object that can be read, too")
	return cmd
}

func (r *repairOptions) list(ctx context.Context, o *database.Options, decode decoder) error {
	return o.With(ctx, database.AsIs, "nothing was changed", func(d sqlstore.Driver) error {
		p, err := o.Rows(ctx, d, "looking", false)
		if err != nil {
			return err
		}
		found, err := upkeep.Damages(ctx, d, decode.readable, p.Show)
		p.End()
		if err != nil {
			return err
		}
		list := make([]damageAnswer, len(found))
		for i := range found {
			list[i] = newDamageAnswer(&found[i])
		}
		return o.Answer(o.Out, list, func(w io.Writer) {
			if len(list) == 0 {
				fmt.Fprintln(w, "every object can be read")
				return
			}
			fmt.Fprintf(w, "KEY\tREVISION\tROLLBACK TO\tREASON\n")
			for _, one := range list {
				good := "-"
				if one.GoodRevision > 0 {
					good = fmt.Sprint(one.GoodRevision)
				}
				fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", one.Key, one.Revision, good, one.Reason)
			}
		})
	})
}

func newDamageAnswer(d *upkeep.Damage) damageAnswer {
	a := damageAnswer{Key: d.Row.Key.String(), Revision: d.Row.Revision}
	if d.Reason != nil {
		a.Reason = d.Reason.Error()
	}
	if d.Good != nil {
		a.GoodRevision = d.Good.Revision
	}
	return a
}

func (r *repairOptions) repair(ctx context.Context, o *database.Options, decode decoder) error {
	return o.With(ctx, database.AsIs, "look with --list whether it was done", func(d sqlstore.Driver) error {
		key, a := r.remove, repairAnswer{Action: "delete", DryRun: r.dryRun}
		if r.back != "" {
			key, a.Action = r.back, "rollback"
		}
		found, err := upkeep.Find(ctx, d, key, decode.readable)
		if err != nil {
			return err
		}
		a.damageAnswer = newDamageAnswer(found)
		switch {
		case found.Reason == nil && !r.force:
			return fmt.Errorf("%s can be read at revision %d: use the API, or give --force", a.Key, a.Revision)
		case a.Action == "rollback" && found.Good == nil:
			return fmt.Errorf("%s has no earlier state that can be read in the history that is kept: there is --delete, or `rowlock store restore` of a backup into an empty database", a.Key)
		case r.dryRun:
		case a.Action == "delete":
			a.WrittenRevision, err = deleteWithClaims(ctx, d, found.Row)
		default:
			a.WrittenRevision, err = upkeep.Rollback(ctx, d, found.Row, *found.Good)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.Key, err)
		}
		if !r.dryRun {
			slog.New(slog.NewTextHandler(o.ErrOut, nil)).Warn("the store was repaired by hand", "action", a.Action, "key", a.Key,
				"was", a.Revision, "reason", a.Reason, "goodRevision", a.GoodRevision, "writtenRevision", a.WrittenRevision, "by", userName())
		}
		return o.Answer(o.Out, a, func(w io.Writer) { a.print(w) })
	})
}

// deleteWithClaims deletes an object and releases the addresses and ports that are claimed for it.
func deleteWithClaims(ctx context.Context, d sqlstore.Driver, row sqlstore.Row) (int64, error) {
	rows := []sqlstore.Row{row}
	if row.Key.Resource == "services" {
		b, err := d.Bounds(ctx)
		if err != nil {
			return 0, err
		}
		claim := kinds.ClaimValue(row.Key.Namespace + "/" + row.Key.Name)
		// No other resource's name sorts behind.
		req := sqlstore.ScanRequest{Revision: b.Head, After: sqlstore.Key{Resource: "~"}}
		err = upkeep.Scan(ctx, d, req, func(page []sqlstore.Row) error {
			for _, r := range page {
				if bytes.Equal(r.Value, claim) {
					rows = append(rows, r)
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return upkeep.Delete(ctx, d, rows...)
}

func (a *repairAnswer) print(w io.Writer) {
	if a.Reason == "" {
		fmt.Fprintf(w, "%s at revision %d can be read\n", a.Key, a.Revision)
	} else {
		fmt.Fprintf(w, "%s at revision %d: %s\n", a.Key, a.Revision, a.Reason)
	}
	what := "deleted"
	if a.Action == "rollback" {
		what = fmt.Sprintf("rolled back to revision %d", a.GoodRevision)
	}
	if a.DryRun {
		fmt.Fprintf(w, "it would be %s; nothing was written\n", what)
		return
	}
	fmt.Fprintf(w, "it was %s, by revision %d\n", what, a.WrittenRevision)
}

// userName returns the operator, for the log.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}
