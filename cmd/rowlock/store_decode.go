package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	codecjson "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/integrity"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

// decoder judges stored values by the catalogue of resources. What is not in it
// is a custom resource.
type decoder struct{ catalogue *kinds.Catalogue }

func newDecoder() decoder { return decoder{kinds.NewCatalogue(builtin.Resources())} }

// row says what is wrong with a value.
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

// readable says why a server cannot read a value.
func (d decoder) readable(row sqlstore.Row) error {
	_, err := d.read(&row)
	return err
}

// read returns the value to serve; nil for a row that is no object.
func (d decoder) read(row *sqlstore.Row) ([]byte, error) {
	if strings.HasPrefix(row.Key.Resource, "~") {
		return nil, decodeClaim(row.Value)
	}
	value, err := integrity.Read(codecjson.New(codecjson.Settings{}), d.catalogue.ByStorage(row.Key.Resource), row)
	if err != nil {
		return nil, fmt.Errorf("its value cannot be read: %w", err)
	}
	return value, nil
}

// decodeClaim judges a row by which an address or a port is taken.
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
