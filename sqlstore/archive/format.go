// Package archive writes the content of a store to files and reads it back: backups that any driver can restore,
// and exports for people.
//
// A backup is consistent at one revision, is taken while servers write, and has a checksum, by which a truncated
// file is recognized. It is gzip over lines of JSON: a header, a line for each row, and a trailer.
package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

const (
	formatName    = "rowlock-backup"
	formatVersion = 1
)

// ErrDamaged: a file is no backup, was cut short, or does not match its checksum.
var ErrDamaged = errors.New("damaged backup")

// Header is the first line of a backup.
type Header struct {
	Format    string    `json:"format"`
	Version   int       `json:"version"`
	Driver    string    `json:"driver"` // that it was taken from
	ClusterID string    `json:"clusterID"`
	Revision  int64     `json:"revision"` // that it is of
	Floor     int64     `json:"floor"`    // from which its history reaches back; Revision without history
	Taken     time.Time `json:"taken"`
	// Past are the floors of snapshots where those reach back further than Floor, as databases keep them.
	Past string `json:"past,omitempty"`
}

// Trailer is the last line. SHA256 covers every byte before it.
type Trailer struct {
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

// line is one row. Value is the stored bytes themselves where they are JSON on
// one line, so that a backup can be read; else they are in Bytes, as base64.
type line struct {
	Resource   string          `json:"resource"`
	Namespace  string          `json:"namespace,omitempty"`
	Name       string          `json:"name"`
	Revision   int64           `json:"revision"`
	Created    int64           `json:"created"`
	Superseded int64           `json:"superseded,omitempty"`
	Deleted    bool            `json:"deleted,omitempty"`
	ExpiresAt  *time.Time      `json:"expiresAt,omitempty"`
	WrittenAt  time.Time       `json:"writtenAt"`
	Damaged    string          `json:"damaged,omitempty"` // the damage of the row, which restoring it does not repair
	Bytes      []byte          `json:"bytes,omitempty"`
	Value      json.RawMessage `json:"value,omitempty"`
}

func encode(row sqlstore.Row) ([]byte, error) {
	row = Restorable(row)
	l := line{
		Resource: row.Key.Resource, Namespace: row.Key.Namespace, Name: row.Key.Name, Revision: row.Revision,
		Created: row.Created, Superseded: row.Superseded, Deleted: row.Deleted, WrittenAt: row.WrittenAt,
	}
	if row.Damaged != nil {
		l.Damaged = row.Damaged.Error()
	}
	if !row.ExpiresAt.IsZero() {
		l.ExpiresAt = &row.ExpiresAt
	}
	plain := json.Valid(row.Value) && !bytes.ContainsAny(row.Value, "\n\r") && len(bytes.TrimSpace(row.Value)) == len(row.Value)
	if !plain {
		l.Bytes = row.Value
	}
	text, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("encoding %s at revision %d: %w", row.Key, row.Revision, err)
	}
	if plain { // not through Marshal, which would change the bytes
		text = append(append(append(text[:len(text)-1], `,"value":`...), row.Value...), '}')
	}
	return append(text, '\n'), nil
}

func decode(text []byte) (sqlstore.Row, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return sqlstore.Row{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	row := sqlstore.Row{
		Key: sqlstore.Key{Resource: l.Resource, Namespace: l.Namespace, Name: l.Name}, Revision: l.Revision,
		Created: l.Created, Superseded: l.Superseded, Deleted: l.Deleted, WrittenAt: l.WrittenAt, Value: l.Bytes,
	}
	if l.Value != nil {
		row.Value = l.Value
	}
	if l.Damaged != "" {
		row.Damaged = errors.New(l.Damaged)
	}
	if l.ExpiresAt != nil {
		row.ExpiresAt = *l.ExpiresAt
	}
	if row.Key.Resource == "" || row.Key.Name == "" || row.Revision <= 0 || row.Created <= 0 || row.Created > row.Revision {
		return sqlstore.Row{}, fmt.Errorf("%w: row %q at revision %d cannot be", ErrDamaged, row.Key, row.Revision)
	}
	return row, nil
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

func newSum() hash.Hash { return sha256.New() }
