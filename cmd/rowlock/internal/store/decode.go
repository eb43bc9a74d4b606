package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/integrity"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

// decoder checks stored values against the catalogue of resources. Values of other resources are custom resources.
type decoder struct {
	catalogue *kinds.Catalogue
	keys      sqlstore.Sealer // nil: values were decrypted already
	ctx       context.Context //nolint:containedctx // of the command that it is made for
	skipped   *int64          // encrypted values that were not looked into, as there are no keys
}

// decrypting calls fn with a decoder that decrypts values. Without a file of keys the decoder
// skips encrypted values, and a message reports that.
func decrypting(ctx context.Context, o *database.Options, fn func(decoder) error) error {
	return database.WithKeys(ctx, o.Encryption, o.Log(), func(keys sqlstore.Sealer, given bool) error {
		d := decoder{catalogue: kinds.NewCatalogue(builtin.Config{}.All()), keys: keys, ctx: ctx, skipped: new(int64)}
		err := fn(d)
		if n := *d.skipped; n > 0 && !given {
			fmt.Fprintf(o.ErrOut, "%d encrypted values were not looked into: give --%s for that\n", n, database.EncryptionFlag)
		}
		return err
	})
}

// open decrypts a row's value; ok is false if that needs keys and there are none.
func (d decoder) open(row *sqlstore.Row) (ok bool, err error) {
	if d.keys == nil || strings.HasPrefix(row.Key.Resource, "~") {
		return true, nil
	}
	plain, _, err := d.keys.Open(d.ctx, row.Key, row.Value)
	if _, none := d.keys.(sqlstore.NoEncryption); none && errors.Is(err, sqlstore.ErrSealed) {
		*d.skipped++
		return false, nil
	}
	if err == nil {
		row.Value = plain
	}
	return err == nil, err
}

// row returns the error of an invalid value.
func (d decoder) row(row sqlstore.Row) error {
	value, err := d.read(&row)
	if err != nil || value == nil {
		return err
	}
	if uid := scan.Lookup(value, "metadata", "uid"); len(uid) <= len(`""`) {
		return errors.New("its value has no UID")
	}
	return nil
}

// readable returns the reason why a server cannot read a value.
func (d decoder) readable(row sqlstore.Row) error {
	_, err := d.read(&row)
	return err
}

// read returns the value that a server would serve; nil for a row that is not an object.
func (d decoder) read(row *sqlstore.Row) ([]byte, error) {
	if row.Damaged != nil {
		return nil, row.Damaged
	}
	if ok, err := d.open(row); !ok {
		return nil, err
	}
	if strings.HasPrefix(row.Key.Resource, "~") {
		return nil, decodeClaim(row.Value)
	}
	value, err := integrity.Read(anyRelease, d.catalogue.ByStorage(row.Key.Resource), row)
	if err != nil {
		return nil, fmt.Errorf("its value cannot be read: %w", err)
	}
	return value, nil
}

// decodeClaim checks the claim of an address or a port.
func decodeClaim(value []byte) error {
	var claim struct {
		Owner string `json:"owner"`
	}
	if err := json.Unmarshal(value, &claim); err != nil {
		return fmt.Errorf("its value does not decode: %w", err)
	}
	if claim.Owner == "" {
		return errors.New("its value names no owner")
	}
	return nil
}
