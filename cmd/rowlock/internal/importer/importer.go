// Package importer is the command that fills an empty database from the store, or the API, of another API server.
package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/server/transfer"
	"github.com/rowlock/rowlock/server/transfer/intake"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption"
	"github.com/rowlock/rowlock/sqlstore/foreign"
	"github.com/rowlock/rowlock/sqlstore/foreign/etcd"
)

// targetFlag names the encryption configuration of the new servers. The plain flag names that of the old ones, as
// operators know it.
const targetFlag = "target-" + database.EncryptionFlag

// unhashedFlag accepts a file of etcd without a hash.
const unhashedFlag = "skip-hash-check"

// importOptions are the flags of import.
type importOptions struct {
	*database.Options
	prefix, target string
	events, dryRun bool
	skip           bool
	spool          string
	takeAlong      []string
	accountKey     string
	snapshot       etcd.SnapshotOptions
	etcd           etcdOptions
	live           clusterFlags
}

func Command() *cobra.Command {
	o := &importOptions{Options: &database.Options{}}
	cmd := &cobra.Command{
		Use:   "import SOURCE | import --from-cluster KUBECONFIG",
		Short: "Import the objects of another API server into an empty database",
		Long: `Import everything that a kube-apiserver or k3s stored into an empty database: from a
kine database, a snapshot of etcd, or a live etcd. SOURCE is one of

  kine+sqlite:FILE, etcd-snapshot:FILE, or the path of such a file
  kine+postgres://USER@HOST/DATABASE (the password: PGPASSWORD or ~/.pgpass)
  kine+mysql://USER@tcp(HOST:PORT)/DATABASE (the password: MYSQL_PWD)
  etcd:https://HOST:PORT[,...] (with the --etcd flags)

With --from-cluster the source is a live cluster: the command reads everything that its
API shows to the user of the kubeconfig, each resource in one version. It never writes to
the source.

Objects keep their UIDs, times, managed fields, generations and resource versions; the
new log begins above all of these, so that connected clients list again. The command
omits, and reports, data that a server creates itself: its leases and endpoints, ranges of
addresses and ports (derived from the Services), and events unless --events is given.

It reads and checks everything before it writes, and writes in one transaction: an
interrupted run leaves the database empty, and the same command continues it, and reads
only the unfinished part again.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (o.live.kubeconfig != "") {
				return errors.New("want one source: SOURCE, or --from-cluster")
			}
			if err := o.live.validate(cmd.Flags().Changed); err != nil {
				return err
			}
			return o.run(cmd.Context(), strings.Join(args, ""))
		},
	}
	o.AddTo(cmd)
	f := cmd.Flags()
	cmd.PersistentFlags().Lookup(database.EncryptionFlag).Usage = "EncryptionConfiguration of the old API server, which defines how its values are encrypted"
	f.StringVar(&o.target, targetFlag, "", "encryption configuration of the new servers, to encrypt values in the database")
	f.StringVar(&o.prefix, "prefix", transfer.DefaultPrefix, "prefix of the old API server's keys (its --etcd-prefix)")
	f.BoolVar(&o.events, "events", false, "import Events, too")
	f.BoolVar(&o.dryRun, "dry-run", false, "read and check everything, write nothing, and report what an import would do")
	f.BoolVar(&o.skip, "skip-undecodable", false, "skip objects that cannot be read, instead of failing")
	f.StringVar(&o.spool, "spool", "", "path of the intermediate files, which contain all objects (default <data-dir>/import)")
	f.StringSliceVar(&o.takeAlong, "take-along", nil, "folders (server/tls of k3s, pki of kubeadm) or files with the authorities and the key of service accounts of the old cluster, which are copied into --data-dir")
	f.StringVar(&o.accountKey, "service-account-key-file", "", "private key by which the old cluster signed tokens of service accounts, which is copied into --data-dir")
	o.etcd.addTo(f)
	f.BoolVar(&o.snapshot.Unhashed, unhashedFlag, false, "read a file of etcd that has no hash, as one copied out of a data directory")
	o.live.addTo(f)
	return cmd
}

func (o *importOptions) run(ctx context.Context, name string) (err error) {
	files, err := readKeyFiles(o.takeAlong, o.accountKey)
	if err != nil {
		return err
	}
	if err := files.conflicts(o.DataDir); err != nil {
		return err
	}
	inUse := o.expectEmpty(ctx)
	if inUse != nil && (!errors.Is(inUse, errInUse) || !o.dryRun && !o.mayBeFinished()) {
		return inUse
	}
	source, err := o.openSource(ctx, name)
	if err != nil {
		return database.Explain(ctx, err, "nothing was imported")
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	job := &intake.Job{Source: source, SkipUndecodable: o.skip, Options: transfer.Options{Prefix: o.prefix, Events: o.events, Now: time.Now().UTC().Truncate(time.Microsecond)}}
	if o.Encryption != "" {
		keys, err := encryption.OpenStock(o.Encryption, o.Log())
		if err != nil {
			return fmt.Errorf("--%s: %w", database.EncryptionFlag, err)
		}
		defer func() { err = errors.Join(err, keys.Close()) }()
		job.Options.Opener = keys
	}
	return o.withTargetKeys(ctx, job, func() error {
		if inUse != nil && !o.dryRun {
			return o.resume(ctx, job, files)
		}
		return o.transfer(ctx, job, files, inUse != nil)
	})
}

// withTargetKeys gives the job the keys that encrypt values for the new database while fn runs.
func (o *importOptions) withTargetKeys(ctx context.Context, job *intake.Job, fn func() error) error {
	var err error
	if job.Mark, err = hashFiles(o.Encryption, o.target, o.live.kubeconfig); err != nil {
		return err
	}
	if live, ok := job.Source.(*clusterSource); ok {
		job.Mark += fmt.Sprintf("%q %q", o.live.context, live.Skipped) // another user may see less of the same revision
	}
	err = database.WithKeys(ctx, o.target, o.Log(), func(keys sqlstore.Sealer, _ bool) error {
		job.Keys = keys
		return fn()
	})
	return err
}

// hashFiles hashes the contents of files.
func hashFiles(paths ...string) (text string, err error) {
	for _, path := range paths {
		var content []byte
		if path != "" {
			if content, err = os.ReadFile(path); err != nil {
				return "", err
			}
		}
		sum := sha256.Sum256(content)
		text += hex.EncodeToString(sum[:]) + " "
	}
	return text, nil
}

// transfer reads the source, and writes the database unless it is a dry run. A dry run accepts a database that is
// in use.
func (o *importOptions) transfer(ctx context.Context, job *intake.Job, files keyFiles, inUse bool) error {
	began := time.Now()
	if !o.dryRun {
		if job.Spool = o.spoolPath(); o.spool == "" {
			if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
				return fmt.Errorf("--data-dir: %w", err)
			}
		}
		if err := o.checkSpoolFolder(); err != nil {
			return err
		}
	}
	p := o.Progress("reading")
	if source, ok := job.Source.(foreign.Counter); ok {
		n, err := source.Count(ctx)
		if err != nil {
			return database.Explain(ctx, err, "nothing was imported")
		}
		p.Total(n)
	}
	job.Progress = p.Show
	spooled, err := job.Read(ctx)
	p.End()
	var undecodable *intake.UndecodableError
	if err != nil && !errors.As(err, &undecodable) {
		return database.Explain(ctx, err, "the database is as empty as before; run it again to start over")
	}
	a := o.newAnswer(job, spooled, files)
	a.InUse = inUse
	if live, ok := job.Source.(*clusterSource); ok {
		a.ResourcesLeft = live.Skipped
		a.Warnings = append(a.Warnings, live.Notes...)
	}
	switch {
	case undecodable != nil && !o.dryRun:
		a.Refused = true
		err := fmt.Errorf("%w, and nothing was written: give the keys that they are encrypted with (--%s), or leave them out (--skip-undecodable)", undecodable, database.EncryptionFlag)
		return errors.Join(o.Answer(o.Out, a, a.table), err)
	case !o.dryRun:
		if err := o.write(ctx, spooled, files); err != nil {
			return err
		}
	}
	a.Seconds = time.Since(began).Seconds()
	return o.report(a, files)
}

// write writes the key files before the rows, so that a database with rows always has its keys, even if the import
// is interrupted.
func (o *importOptions) write(ctx context.Context, spooled *intake.Spooled, files keyFiles) error {
	if err := files.put(o.DataDir); err != nil {
		return err
	}
	err := o.With(ctx, database.Migrate, "the database is as empty as before; run it again, and data that was read is not read again", func(d sqlstore.Driver) error {
		p := o.Progress("writing")
		p.Total(spooled.Report.Objects + spooled.Report.Claims)
		defer p.End()
		return spooled.Load(ctx, d, p.Show)
	})
	if errors.Is(err, sqlstore.ErrNotEmpty) {
		return errors.Join(errInUse, spooled.Remove())
	}
	if err != nil {
		return err
	}
	return spooled.Remove()
}

var errInUse = errors.New("--store: the database is not empty, and only an empty one can be filled: name a new one")

// expectEmpty refuses a database that is in use before hours are spent on reading. It does not create a database.
func (o *importOptions) expectEmpty(ctx context.Context) error {
	if file, ok := database.SQLitePath(o.URL()); ok {
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			return nil // it does not exist yet, or opening it returns the error
		}
	}
	if database.IsInMemory(o.URL()) {
		return errors.New("--store: a database in memory would be gone with this command")
	}
	d, err := database.Open(ctx, o.URL(), database.AsIs)
	if schema, ok := errors.AsType[*sqlstore.SchemaError](err); ok && schema.Found < schema.Known {
		return nil // empty, or older: that is seen when it is filled
	}
	if err != nil {
		return database.Explain(ctx, err, "nothing was imported")
	}
	bounds, err := d.Bounds(ctx)
	err = errors.Join(err, d.Close())
	if err == nil && bounds.Head != 0 {
		return errInUse
	}
	return err
}
