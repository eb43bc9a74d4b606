package sqlstore

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"strconv"
	"time"
)

// A row's checksum is CRC-32C over the values that its writer knows, plus 3 times its revision, plus 5 times
// the revision that created the object. The two revisions are added and not hashed because PostgreSQL assigns
// them inside the statement that inserts the row, and has no CRC-32C before release 18. superseded_revision
// is not covered: servers of older versions set it without updating checksums. docs/sql.md has the formula.
const (
	sumRevision = 3
	sumCreated  = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksummer computes checksums of rows and reuses its memory. It is for one goroutine.
type Checksummer struct{ head []byte }

// Partial returns the part of a checksum that does not depend on revisions. Times are microseconds since 1970; expires is nil
// for a row that does not expire.
func (s *Checksummer) Partial(resource, namespace, name string, deleted bool, value []byte, expires *int64, written int64) int64 {
	s.begin(deleted, expires, written)
	for _, part := range [...]string{resource, namespace, name} {
		s.head = append(append(s.head, part...), 0)
	}
	return s.end(value)
}

func (s *Checksummer) begin(deleted bool, expires *int64, written int64) {
	at := int64(math.MinInt64)
	if expires != nil {
		at = *expires
	}
	s.head = binary.BigEndian.AppendUint64(s.head[:0], uint64(written))
	s.head = binary.BigEndian.AppendUint64(s.head, uint64(at))
	if deleted {
		s.head = append(s.head, 1)
	} else {
		s.head = append(s.head, 0)
	}
}

func (s *Checksummer) end(value []byte) int64 {
	return int64(crc32.Update(crc32.Update(0, castagnoli, s.head), castagnoli, value))
}

// CompleteChecksum returns the whole checksum of a row from the result of Partial.
func CompleteChecksum(written, revision, created int64) int64 {
	return written + sumRevision*revision + sumCreated*created
}

// Row returns the checksum of a row.
func (s *Checksummer) Row(row *Row) int64 {
	return CompleteChecksum(s.Partial(row.Key.Resource, row.Key.Namespace, row.Key.Name, row.Deleted, row.Value, Micros(row.ExpiresAt), row.WrittenAt.UnixMicro()), row.Revision, row.Created)
}

// Micros returns a time in microseconds since 1970, or nil for the zero time.
func Micros(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.UnixMicro())
}

// DamagedChecksum is no row's checksum: rows that are known to be damaged are written with it.
const DamagedChecksum = -1

// DamageError: a row is not as it was written, or not where it was written. It contains no part of the value.
type DamageError struct{ Reason string }

func (e *DamageError) Error() string { return "damaged in the database: " + e.Reason }

// ChecksumError returns the damage of a row whose checksum differs from the stored one.
func ChecksumError(stored, computed int64) error {
	return &DamageError{"the row has the checksum " + strconv.FormatInt(stored, 10) + ", its columns give " + strconv.FormatInt(computed, 10)}
}
