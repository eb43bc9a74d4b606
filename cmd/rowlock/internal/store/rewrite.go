package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

type rewriteOptions struct {
	resources []string
	all       bool
	rate      int
}

func rewriteCommand(o *database.Options) *cobra.Command {
	r := &rewriteOptions{}
	cmd := &cobra.Command{
		Use:   "rewrite (--resource RESOURCE[,...] | --all)",
		Short: "Rewrite objects in the current form, encrypted by the first provider",
		Long: `Rewrite the objects whose stored form is not the current one: those that are
encrypted by another provider or key than the first one for their resource in
--encryption-provider-config (or not at all), and those in the form of an older
version. Other objects are only read, so the command can be interrupted and run again.

Custom resources are written in the storage version of their definition, so that an
older one can be removed from its status.storedVersions. If a webhook converts between
versions, the command reports the objects and leaves them unchanged: use a
StorageVersionMigration on a running server.

To rotate a key: add the new key as the second one and distribute the file to all
servers; make it the first one, and distribute the file again; run this command with
that file; remove the old key. To decrypt, put identity first.

Each object is written as servers write, if it did not change meanwhile; servers may
run, and their watches see a new revision without other changes. Then the past states of
resources that are or were encrypted are encrypted in place by the first provider,
packed or not, without a new revision; their form does not change. Past states that
cannot be read are reported and left unchanged.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case r.all == (len(r.resources) > 0):
				return errors.New("want either --resource or --all")
			case r.rate < 0:
				return fmt.Errorf("--rate %d: want a number of objects a second", r.rate)
			}
			return r.run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&r.resources, "resource", nil, "resources to rewrite: secrets, deployments.apps")
	f.BoolVar(&r.all, "all", false, "all resources")
	f.IntVar(&r.rate, "rate", 0, "most objects to write in a second (0: as fast as it goes)")
	return cmd
}

func (r *rewriteOptions) run(ctx context.Context, o *database.Options) error {
	return database.WithKeys(ctx, o.Encryption, o.Log(), func(keys sqlstore.Sealer, given bool) error {
		return o.With(ctx, database.AsIs, "rewritten objects stay; run it again for the rest", func(d sqlstore.Driver) error {
			forms, err := newEncoder(ctx, d, keys)
			if err != nil {
				return err
			}
			for _, problem := range forms.unreadable {
				fmt.Fprintf(o.ErrOut, "the objects of a definition that cannot be read stay in their version: %s\n", problem)
			}
			p, err := o.Rows(ctx, d, "rewriting", true)
			if err != nil {
				return err
			}
			began := time.Now()
			job := upkeep.Rewrite{Resources: r.resources, Keys: keys, Rate: r.rate, Form: func(row *sqlstore.Row) ([]byte, error) { return forms.encode(ctx, row) }, Progress: func(done upkeep.Rewritten) {
				p.What(fmt.Sprintf("rewriting: %d written (%.0f/s), looked at", done.Written+done.PastWritten, float64(done.Written+done.PastWritten)/max(time.Since(began).Seconds(), 0.001)))
				p.Show(done.Objects + done.Past)
			}}
			done, err := job.Run(ctx, d)
			p.End()
			if err != nil {
				return err
			}
			took := time.Since(began)
			if err := o.Answer(o.Out, done, func(w io.Writer) { rewriteTable(w, &done, took) }); err != nil {
				return err
			}
			switch {
			case done.Left > 0 && !given:
				return fmt.Errorf("%d objects cannot be read or converted and were left as they are: encrypted ones need --%s", done.Left, database.EncryptionFlag)
			case done.Left > 0:
				return fmt.Errorf("%d objects cannot be read or converted and were left as they are", done.Left)
			case done.PastLeft > 0:
				return fmt.Errorf("%d past states cannot be read and were left as they are: keep the keys that encrypted them", done.PastLeft)
			}
			return nil
		})
	})
}

func rewriteTable(w io.Writer, done *upkeep.Rewritten, took time.Duration) {
	if len(done.Reasons) > 0 {
		fmt.Fprintf(w, "KEY\tREVISION\tPROBLEM\n")
	}
	for _, p := range done.Reasons {
		fmt.Fprintf(w, "%s\t%d\t%s\n", p.Key, p.Revision, p.Reason)
	}
	fmt.Fprintf(w, "looked at %d objects and %d past states, wrote %d and %d in %s, left %d and %d\n",
		done.Objects, done.Past, done.Written, done.PastWritten, took.Round(time.Millisecond), done.Left, done.PastLeft)
}
