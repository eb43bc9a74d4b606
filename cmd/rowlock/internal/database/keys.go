package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption"
)

// WithKeys calls fn with the keys that decrypt stored values, and closes them afterwards. Without a file of keys
// values cannot be decrypted, and given is false.
func WithKeys(ctx context.Context, path string, log *slog.Logger, fn func(keys sqlstore.Sealer, given bool) error) (err error) {
	if path == "" {
		return fn(sqlstore.NoEncryption{}, false)
	}
	set, err := encryption.Open(ctx, encryption.Config{Path: path, KMSv1: true, Log: log})
	if err != nil {
		return fmt.Errorf("--%s: %w", EncryptionFlag, err)
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

const EncryptionFlag = "encryption-provider-config"

// Decrypt decrypts a row for an export. Without keys the export fails; a value that
// the keys do not open is damaged.
func Decrypt(ctx context.Context, keys sqlstore.Sealer, row *sqlstore.Row) error {
	plain, _, err := keys.Open(ctx, row.Key, row.Value)
	if _, none := keys.(sqlstore.NoEncryption); none && err != nil {
		return fmt.Errorf("%w: give --%s", err, EncryptionFlag)
	}
	if err == nil {
		row.Value = plain
	}
	return ctx.Err()
}

// ExplainCompacted adds a remedy to the error that history was compacted while it was read.
func ExplainCompacted(err error) error {
	if _, ok := errors.AsType[*sqlstore.CompactedError](err); ok {
		return fmt.Errorf("%w: reading took longer than servers keep history; raise their --history-retention", err)
	}
	return err
}
