package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/health"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption"
)

const encryptionFlag = "encryption-provider-config"

// encryptionOptions are the flags of encryption at rest.
type encryptionOptions struct {
	path   string
	reload bool
}

func (o *encryptionOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.path, encryptionFlag, "", "file that says which resources are encrypted in the database, and how (an EncryptionConfiguration)")
	f.BoolVar(&o.reload, encryptionFlag+"-automatic-reload", false, "take the file of --"+encryptionFlag+" up anew when it changes")
}

// build reads the file; nil where there is none. The caller closes the set.
func (o *encryptionOptions) build(ctx context.Context, gate func(string) bool, address string, log *slog.Logger) (*encryption.Set, error) {
	if o.path == "" {
		if o.reload {
			return nil, errors.New("--" + encryptionFlag + "-automatic-reload must be set with --" + encryptionFlag)
		}
		return nil, nil
	}
	reportLoose(log, source{"--" + encryptionFlag, o.path})
	set, err := encryption.Open(ctx, encryption.Config{Path: o.path, Reload: o.reload, KMSv1: gate("KMSv1"), ServerHash: idHash(address), Log: log})
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", encryptionFlag, err)
	}
	return set, nil
}

// sealer is the set as a store takes it.
func sealer(set *encryption.Set) sqlstore.Sealer {
	if set == nil {
		return nil
	}
	return set
}

// addEncryption wires what a set needs while a server runs.
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

// keysFor lends what decrypts values to a command, for as long as fn runs. Without a file
// nothing can be decrypted, and given is false.
func keysFor(ctx context.Context, path string, log *slog.Logger, fn func(keys sqlstore.Sealer, given bool) error) (err error) {
	if path == "" {
		return fn(sqlstore.Unsealed{}, false)
	}
	set, err := encryption.Open(ctx, encryption.Config{Path: path, KMSv1: true, Log: log})
	if err != nil {
		return fmt.Errorf("--%s: %w", encryptionFlag, err)
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- set.Run(ctx) }()
	defer func() {
		stop()
		if e := <-done; err == nil && e != nil && !errors.Is(e, context.Canceled) {
			err = e
		}
		err = errors.Join(err, set.Close())
	}()
	return fn(set, true)
}
