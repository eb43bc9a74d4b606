package sqlite_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

const nextPast = "SEARCH kv USING COVERING INDEX kv_past (resource=? AND namespace=? AND name=? AND superseded_revision>?)"

// The required plan of each statement; every listed step has to occur.
var plans = map[string][]string{
	"qBounds":              {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qRevision":            {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qSetRevision":         {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qSetBatch":            {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qBatch":               {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qCompatible":          {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qRaiseFloor":          {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qSetClusterID":        {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qClusterID":           {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qCacheFiles":          {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qSetCacheFiles":       {},
	"qListRevisions":       {"SEARCH kv USING INDEX kv_live ((resource,namespace,name)>(?,?,?) AND (resource,namespace,name)<(?,?,?))"},
	"qListEnded":           {"SEARCH kv USING COVERING INDEX kv_ended (superseded_revision>?)"},
	"qIndexedLive":         {"SCAN kv USING INDEX kv_live"},
	"qIndexedEnded":        {"SEARCH kv USING COVERING INDEX kv_ended (superseded_revision>?)"},
	"qPageLive":            {"SEARCH kv USING INDEX kv_live ((resource,namespace,name)>(?,?,?))"},
	"qPageTable":           {"SEARCH kv USING INTEGER PRIMARY KEY (rowid>?)"},
	"qCheckLive":           {"SEARCH i USING INDEX kv_live ((resource,namespace,name)>(?,?,?) AND (resource,namespace,name)<(?,?,?))", "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
	"qCheckTable":          {"SEARCH t USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", "SEARCH i USING INDEX kv_live (resource=? AND namespace=? AND name=? AND rowid=?)", "SEARCH i USING COVERING INDEX kv_ended (superseded_revision=? AND rowid=?)"},
	"qCheckValues":         {"SEARCH kv USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	"qNewest":              {"SEARCH kv"},
	"qReserved":            {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qReserve":             {},
	"qBoot":                {},
	"qFence":               {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qUnreserve":           {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qInsert":              {},
	"qExpected":            {"SEARCH kv USING INTEGER PRIMARY KEY (rowid=?)"},
	"qSupersede":           {"SEARCH kv USING INTEGER PRIMARY KEY (rowid=?)"},
	"qLive":                {"SEARCH kv USING INDEX kv_live (resource=? AND namespace=? AND name=?)"},
	"qLiveAll":             {"SEARCH kv USING INDEX kv_live ((resource,namespace,name)>(?,?,?))"},
	"qLiveResource":        {"SEARCH kv USING INDEX kv_live (resource=? AND (namespace,name)>(?,?))"},
	"qLiveNamespace":       {"SEARCH kv USING INDEX kv_live (resource=? AND namespace=? AND name>?)"},
	"qEndedAll":            {"SEARCH kv USING INDEX kv_ended (superseded_revision>?)"},
	"qEndedResource":       {"SEARCH kv USING INDEX kv_ended (superseded_revision>?)"},
	"qEndedNamespace":      {"SEARCH kv USING INDEX kv_ended (superseded_revision>?)"},
	"qWhole":               {"SEARCH kv USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	"qRow":                 {"SEARCH kv USING INTEGER PRIMARY KEY (rowid=?)"},
	"qReadEnded":           {"SEARCH kv USING INDEX kv_past (resource=? AND namespace=? AND name=? AND superseded_revision>?)"},
	"qPast":                {"SEARCH kv USING INDEX kv_past (resource=? AND namespace=? AND name=? AND superseded_revision>? AND superseded_revision<?)"},
	"qNextPastAll":         {"SEARCH k USING COVERING INDEX kv_past ((resource,namespace,name)>(?,?,?))", nextPast},
	"qNextPastResource":    {"SEARCH k USING COVERING INDEX kv_past (resource=? AND (namespace,name)>(?,?))", nextPast},
	"qNextPastNamespace":   {"SEARCH k USING COVERING INDEX kv_past (resource=? AND namespace=? AND name>?)", nextPast},
	"qLastChanges":         {"SEARCH kv USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", "USE TEMP B-TREE FOR GROUP BY"},
	"qChanges":             {"SEARCH k USING INTEGER PRIMARY KEY (rowid>?)", "SEARCH p USING COVERING INDEX kv_ended (superseded_revision=? AND rowid<?)"},
	"qChangesPrev":         {"SEARCH k USING INTEGER PRIMARY KEY (rowid>?)", "SEARCH p USING INDEX kv_ended (superseded_revision=? AND rowid<?)"},
	"qWrittenAt":           {"SEARCH kv USING INTEGER PRIMARY KEY (rowid=?)"},
	"qNewestAt":            {"SEARCH kv USING INTEGER PRIMARY KEY (rowid>?)"},
	"qExpired":             {"SEARCH kv USING INDEX kv_expiring (expires_at>? AND expires_at<?)"},
	"qNote":                {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qSetNote":             {},
	"qFloors":              {"SEARCH kv_meta USING PRIMARY KEY (key=?)"},
	"qSetFloors":           {},
	"qPacked":              {"SEARCH kv_packed USING INDEX kv_packed_past (resource=? AND namespace=? AND name=? AND until_revision>?)"},
	"qPackedHead":          {"SEARCH kv_packed USING INDEX kv_packed_past (resource=? AND namespace=? AND name=? AND until_revision>?)"},
	"qPackedBelow":         {"SEARCH kv_packed USING INDEX kv_packed_past (resource=? AND namespace=? AND name=? AND until_revision>? AND until_revision<?)"},
	"qPackedRow":           {"SEARCH kv_packed USING INTEGER PRIMARY KEY (rowid=?)"},
	"qNextPackedAll":       {"SEARCH kv_packed USING COVERING INDEX kv_packed_past ((resource,namespace,name)>(?,?,?))"},
	"qNextPackedResource":  {"SEARCH kv_packed USING COVERING INDEX kv_packed_past (resource=? AND (namespace,name)>(?,?))"},
	"qNextPackedNamespace": {"SEARCH kv_packed USING COVERING INDEX kv_packed_past (resource=? AND namespace=? AND name>?)"},
	"qNextEnded":           {"SEARCH kv USING COVERING INDEX kv_past ((resource,namespace,name)>(?,?,?))"},
	"qEndedRows":           {"SEARCH kv USING INDEX kv_past (resource=? AND namespace=? AND name=? AND superseded_revision>? AND superseded_revision<?)"},
	"qUnkeep":              {"SEARCH kv USING INTEGER PRIMARY KEY (rowid=?)"},
	"qRestate":             {"SEARCH kv USING INTEGER PRIMARY KEY (rowid=?)"},
	"qDropPack":            {"SEARCH kv_packed USING INDEX kv_packed_past (resource=? AND namespace=? AND name=? AND until_revision=?)"},
	"qInsertPack":          {},
	"qExtendPack":          {"SEARCH kv_packed USING INTEGER PRIMARY KEY (rowid=?)"},
	"qNextForget":          {"SEARCH kv_packed USING COVERING INDEX kv_packed_ended (resource>?)"},
	"qForgettable":         {"SEARCH kv_packed USING INDEX kv_packed_ended (resource=? AND until_revision<?)"},
	"qForget":              {"SEARCH kv_packed USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH kv_packed USING COVERING INDEX kv_packed_ended (resource=? AND until_revision<?)"},
	"qSeconds":             {"SEARCH kv USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	"qMark":                {},
	"qMarked":              {"SEARCH kv_marks USING INTEGER PRIMARY KEY (rowid<?)"},
	"qMarkedLast":          {"SEARCH kv_marks USING INTEGER PRIMARY KEY (rowid<?)"},
	"qMarkedOld":           {"SEARCH kv_marks USING INTEGER PRIMARY KEY (rowid<?)", "SEARCH kv_marks USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	"qYoung":               {"SEARCH kv USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	"qOldest":              {"SEARCH kv USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	"qMarkRow":             {"SEARCH kv USING INTEGER PRIMARY KEY (rowid=?)"},
	"qMarkSeconds":         {"SEARCH kv_marks"},
	"qForgetMarks":         {"SEARCH kv_marks USING INTEGER PRIMARY KEY (rowid<?)"},
	"qBeginLarge":          {},
	"qLargeBegun":          {},
	"qLargeUnheld":         {"SEARCH kv_large USING INTEGER PRIMARY KEY (rowid=?)"},
	"qHoldLarge":           {"SEARCH kv_large USING INTEGER PRIMARY KEY (rowid=?)"},
	"qAbandon":             {"SEARCH kv_large USING INTEGER PRIMARY KEY (rowid=?)"},
	"qDeleteLarge":         {"SEARCH kv_large USING INTEGER PRIMARY KEY (rowid=?)"},
	"qDropLarge":           {"SEARCH kv_large USING INDEX kv_large_revision (revision=?)"},
	"qAbandonOld":          {"SEARCH kv_large USING INDEX kv_large_revision (revision=?)"},
	"qDropped":             {"SEARCH kv_large USING COVERING INDEX kv_large_revision (revision=?)"},
	"qUnswept":             {"SEARCH kv_large USING INDEX kv_large_revision (revision=?)"},
	"qAnyLarge":            {"SCAN kv_large USING COVERING INDEX kv_large_revision"}, // to its first entry
	"qTrimLarge":           {"SEARCH kv_large USING COVERING INDEX kv_large_revision (revision=?)", "SEARCH kv USING COVERING INDEX kv_ended (superseded_revision<?)"},
	"qAddPiece":            {},
	"qPieces":              {"SEARCH kv_pieces USING INDEX sqlite_autoindex_kv_pieces_1 (large=?)"},
	"qPiecesBytes":         {"SEARCH kv_pieces USING INDEX sqlite_autoindex_kv_pieces_1 (large=?)"},
	"qDeletePieces":        {"SEARCH kv_pieces USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH kv_pieces USING COVERING INDEX sqlite_autoindex_kv_pieces_1 (large=?)", "SEARCH kv_large EXISTS USING INTEGER PRIMARY KEY (rowid=?)"},
	"qLiveRevision":        {"SEARCH kv USING INDEX kv_live (resource=? AND namespace=? AND name=?)"},
	"qHasEnded":            {"SEARCH kv USING INTEGER PRIMARY KEY (rowid=?)"},
	"qUnkeepLarge":         {"SEARCH kv USING INTEGER PRIMARY KEY (rowid=?)"},
	"qCheckLarge":          {"SEARCH kv USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	"qTrimmable":           {"SEARCH kv USING INDEX kv_ended (superseded_revision<?)"},
	"qTrim":                {"SEARCH kv USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH kv USING COVERING INDEX kv_ended (superseded_revision<?)"},
}

// Statements that are no searches, or read whole tables for operators.
var unplanned = map[string]bool{"qBegin": true, "qBeginRO": true, "qCommit": true, "qRollback": true, "qSizes": true, "qCounts": true, "qPacks": true}

func TestPlans(t *testing.T) {
	names := statementNames(t)
	d := file{path: t.TempDir() + "/test.db"}.Open(t).(*sqlite.Driver)
	for _, name := range names {
		if unplanned[name] {
			continue
		}
		query, known := sqlite.Statements[name]
		want, planned := plans[name]
		if !known || !planned {
			t.Errorf("%s has no plan to compare with", name)
			continue
		}
		plan, err := d.Explain(query)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, step := range want {
			if !strings.Contains(plan, step) {
				t.Errorf("%s is planned as %q, want %q", name, plan, step)
			}
		}
		if strings.Contains(plan, "SCAN kv") && name != "qInsert" && name != "qForgetMarks" && name != "qIndexedLive" && name != "qAnyLarge" { // the oldest few of them
			t.Errorf("%s reads a whole table: %q", name, plan)
		}
		if (strings.HasPrefix(name, "qLive") || strings.HasPrefix(name, "qNext") || strings.HasPrefix(name, "qPacked") || strings.HasPrefix(name, "qCheck") || strings.HasPrefix(name, "qPage") || name == "qEndedRows" || name == "qPast" || name == "qReadEnded") && strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s sorts: %q", name, plan)
		}
	}
}

// A temporary table is a database of its own, made and thrown away each time: it
// would cost a small batch as much as all the rest of it.
func TestBatchMakesNoTemporaryTable(t *testing.T) {
	d := file{path: t.TempDir() + "/test.db"}.Open(t).(*sqlite.Driver)
	for _, name := range []string{"qRevision", "qExpected", "qSupersede", "qInsert", "qSetRevision", "qSetBatch"} {
		codes, err := d.Opcodes(sqlite.Statements[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !strings.Contains(codes, "Halt") || strings.Contains(codes, "Ephemeral") {
			t.Errorf("%s becomes %s", name, codes)
		}
	}
}

// statementNames lists the constants of queries.go that are statements.
func statementNames(t *testing.T) (names []string) {
	f, err := parser.ParseFile(token.NewFileSet(), "queries.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "q") {
			names = append(names, spec.Names[0].Name)
		}
		return true
	})
	if len(names) < 20 {
		t.Fatalf("queries.go has only %v", names)
	}
	return names
}
