package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/health"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption"
)

// encryptionOptions are the flags of encryption at rest.
type encryptionOptions struct {
	path   string
	reload bool
}

func (o *encryptionOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.path, database.EncryptionFlag, "", "EncryptionConfiguration file: the resources to encrypt in the database, and their providers")
	f.BoolVar(&o.reload, database.EncryptionFlag+"-automatic-reload", false, "reload the file of --"+database.EncryptionFlag+" when it changes")
}

// build reads the file; nil without one. The caller closes the set.
func (o *encryptionOptions) build(ctx context.Context, gate func(string) bool, address string, log *slog.Logger) (*encryption.Set, error) {
	if o.path == "" {
		if o.reload {
			return nil, errors.New("--" + database.EncryptionFlag + "-automatic-reload must be set with --" + database.EncryptionFlag)
		}
		return nil, nil
	}
	flagfile.WarnLoose(log, flagfile.New("--"+database.EncryptionFlag, o.path))
	set, err := encryption.Open(ctx, encryption.Config{Path: o.path, Reload: o.reload, KMSv1: gate("KMSv1"), ServerHash: program.ServerID(address), Log: log})
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", database.EncryptionFlag, err)
	}
	return set, nil
}

// sealer returns the set as a sqlstore.Sealer, nil for none.
func sealer(set *encryption.Set) sqlstore.Sealer {
	if set == nil {
		return nil
	}
	return set
}

// addEncryption adds the set's loop, metrics and health checks to a server.
func addEncryption(set *encryption.Set, cfg *server.Config) {
	if set == nil {
		return
	}
	cfg.Loops = append(cfg.Loops, server.Loop{Name: "encryption", Run: set.Run})
	cfg.Collectors = append(cfg.Collectors, set.Collectors()...)
	for _, c := range set.Checks() {
		cfg.ReadyChecks = append(cfg.ReadyChecks, health.Check{Name: c.Name, Probe: c.Probe})
	}
}
