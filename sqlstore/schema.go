package sqlstore

import "fmt"

// Schema compares a database's schema with the one that a binary knows. It is for drivers.
type Schema struct {
	Found, Known uint
	Dirty        bool // a migration to Found was interrupted
}

// Lacks reports whether migrations have to run before the database can be used. compatible reads the oldest
// version whose binaries can use a schema that is newer than theirs. frozen forbids migrations. Errors:
// SchemaError, and those of compatible.
func (s Schema) Lacks(compatible func() (int64, error), frozen bool) (bool, error) {
	if s.Found > s.Known {
		oldest, err := compatible()
		if err == nil && uint(oldest) > s.Known {
			err = &SchemaError{Found: s.Found, Known: s.Known, Needs: uint(oldest), Reason: fmt.Sprintf("it holds what only versions that know migration %d can read; use the newer version that wrote it, or undo that with it (docs/operations.md, Upgrades)", oldest)}
		}
		return false, err
	}
	lacks := s.Found < s.Known || s.Dirty
	if lacks && frozen {
		return false, &SchemaError{Found: s.Found, Known: s.Known, Reason: "it must be migrated first"}
	}
	return lacks, nil
}

// PackedSchema is the first schema whose binaries support packs. While snapshots reach back farther than the
// log, older binaries must not use the database: they would delete rows that wait to be packed, and still
// claim to have those snapshots. When nothing is packed any more the requirement returns to Unpacked.
const (
	PackedSchema   = 6
	UnpackedSchema = 1
)

// RelaxedSchema is the first schema whose binaries look for revisions that were lost with relaxed commits
// before they assign any. Older binaries must not use a database with reserved revisions.
const RelaxedSchema = 7

// LargeSchema is the first schema whose binaries read values that SQLite stores in pieces. Older binaries must not use a database that has
// such values, or pieces that are not deleted yet.
const LargeSchema = 13
