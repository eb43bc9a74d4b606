package archive

import (
	"strconv"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Restorable returns the row that a backup holds for a row. It replaces fields of a damaged row that no row can have: readers
// would refuse them, and with them all of the backup.
func Restorable(row sqlstore.Row) sqlstore.Row {
	if row.Damaged == nil {
		return row
	}
	if row.Created <= 0 || row.Created > row.Revision {
		row.Created = row.Revision
	}
	if row.Key.Resource == "" || row.Key.Name == "" {
		row.Key = sqlstore.Key{Resource: "~damaged", Name: strconv.FormatInt(row.Revision, 10)} // no object's
	}
	if !fitsJSON(row.WrittenAt) {
		row.WrittenAt = time.Unix(0, 0).UTC()
	}
	if !fitsJSON(row.ExpiresAt) {
		row.ExpiresAt = time.Time{}
	}
	return row
}

// fitsJSON reports whether JSON can hold a time.
func fitsJSON(t time.Time) bool { return t.Year() >= 0 && t.Year() <= 9999 }
