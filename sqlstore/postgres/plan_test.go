package postgres_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
)

// The index that each statement must use on kv; "" for those that read kv_meta or
// kv_lead alone, which have a handful of rows.
var indexes = map[string][]string{
	"qBounds": nil, "qBoundsNow": nil, "qLock": nil, "qLockFloors": nil, "qLockAlive": nil, "qAlive": {"kv_pkey"}, "qCluster": nil, "qPlace": nil, "qPlaceBare": nil, "qSetLine": nil, "qRevive": nil, "qReserve": nil, "qRelax": nil, "qFence": nil, "qFlush": nil, "qSetRevision": nil, "qSetClusterID": nil, "qRaiseFloor": nil, "qCompatible": nil,
	"qCacheFiles": nil, "qLockCacheFiles": nil, "qCacheFilesRow": nil, "qSetCacheFiles": nil, "qWholeRows": {"kv_pkey"},
	"qMarker": nil, "qSetMarker": nil, "qNewMarker": nil, "qDropMarker": nil, "qLead": nil, "qTakeLead": nil, "qRenewLeads": nil, "qLeaders": nil, "qSynchronous": nil, "qLeader": nil, "qUnlead": nil, "qLeadsStand": nil, "qLeadsLost": nil,
	"qWave": {"kv_pkey", "kv_live"}, "qWritten": {"kv_pkey"},
	"qLiveAll": {"kv_live"}, "qLiveResource": {"kv_live"}, "qLiveNamespace": {"kv_live"}, "qLive": {"kv_live"},
	"qEndedAll": {"kv_ended", "kv_pkey"}, "qEndedResource": {"kv_ended", "kv_pkey"}, "qEndedNamespace": {"kv_ended", "kv_pkey"},
	"qPastAll": {"kv_past"}, "qPastResource": {"kv_past"}, "qPastNamespace": {"kv_past"}, "qReadEnded": {"kv_past"}, "qPast": {"kv_past"},
	"qChanges": {"kv_pkey", "kv_ended"}, "qChangesPrev": {"kv_pkey", "kv_ended"},
	"qNote": nil, "qNewNote": nil, "qSetNote": nil, "qFloors": nil, "qSetFloors": nil, "qInsertPacks": nil, "qMark": nil, "qForgetMarks": {"kv_marks_pkey"}, "qMarked": {"kv_marks_pkey"}, "qMarkedLast": {"kv_marks_pkey"}, "qMarkedOld": {"kv_marks_pkey"}, "qYoung": {"kv_pkey"}, "qOldest": {"kv_pkey"}, "qMarkRow": {"kv_pkey"}, "qMarkSeconds": {"kv_marks_pkey"},
	"qPacked": {"kv_packed_past"}, "qPackedBelow": {"kv_packed_past"}, "qPackedAll": {"kv_packed_past"}, "qPackedResource": {"kv_packed_past"}, "qPackedNamespace": {"kv_packed_past"},
	"qNextPacked": {"kv_packed_past"}, "qNextEnded": {"kv_past"}, "qEndedRows": {"kv_past"}, "qUnkeep": {"kv_pkey"}, "qRestate": {"kv_pkey"}, "qDropPack": {"kv_packed_past"},
	"qNextForget": {"kv_packed_ended"}, "qForget": {"kv_packed_ended"}, "qSeconds": {"kv_pkey"},
	"qWrittenAt": {"kv_pkey"}, "qLastChanges": {"kv_pkey"}, "qExpired": {"kv_expiring"}, "qTrim": {"kv_ended", "kv_pkey"},
}

// Statements without a plan, and those that read whole tables for operators.
var unplanned = map[string]bool{
	"qBegin": true, "qBeginSnapshot": true, "qCommit": true, "qNotify": true, "qListen": true,
	"qTerminate": true, "qOldMarkers": true, "qHandRights": true, "qSizes": true, "qCounts": true, "qPacks": true, "qSchema": true, "qTable": true, "qDataChecksums": true,
	"qWhole": true, "qListRevisions": true, "qWholeSettings": true, // see wholePlan
	"qSurroundings": true, "qNoTimeouts": true, "qNoLimits": true, "qSettings": true, "qOwnSession": true, "qAsynchronous": true, "qLeaderWaits": true, "qSession": true, "qSessionsGone": true,
}

var (
	argument  = regexp.MustCompile(`\$(\d+)`)
	indexStep = regexp.MustCompile(`Index (Only )?Scan (Backward )?using kv_(pkey|live|ended|past|expiring)`)
	sortStep  = regexp.MustCompile(`(?m)^\s*(->\s+)?Sort  `)
)

// fill writes 200,000 rows: 20,000 objects of ten versions.
const fill = `
DELETE FROM kv;
INSERT INTO kv SELECT r, 'pods', 'ns' || (r % 20000) % 10, 'p' || r % 20000, r % 20000 + 1, CASE WHEN r <= 180000 THEN r + 20000 END, false,
  convert_to('{"metadata":{}}', 'UTF8'), CASE WHEN r % 1000 = 0 THEN now() END, '2026-03-01'::timestamptz + r * interval '1 second'
FROM generate_series(1, 200000) r;
INSERT INTO kv_packed SELECT 'pods', 'ns' || r % 1000 % 10, 'p' || r % 1000, r, r + 1000, r, false, 1, '2026-03-01', '{}' FROM generate_series(1, 50000) r;
INSERT INTO kv_marks SELECT r, r FROM generate_series(1, 50000) r;
UPDATE kv_meta SET number = 200000 WHERE key = 'revision'`

// fillLittle writes as much as there is when sessions are first replaced.
const fillLittle = `
INSERT INTO kv SELECT -r, 'pods', 'ns' || r % 10, 'q' || r, -r, CASE WHEN r % 2 = 0 THEN -r + 1 END, false,
  convert_to('{"metadata":{}}', 'UTF8'), CASE WHEN r % 100 = 0 THEN now() END, '2026-03-01'::timestamptz
FROM generate_series(1, 1000) r`

func TestPlans(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	d := db.Open(t).(*postgres.Driver)
	// A plan that was made while the table was small is used until it has grown a lot.
	for _, statistics := range []string{"a small table's", "no", "fresh"} {
		switch statistics {
		case "a small table's":
			db.Exec(t, fillLittle)
		case "no":
			db.Exec(t, fill)
		case "fresh":
			db.Exec(t, "VACUUM ANALYZE kv, kv_packed, kv_marks")
		}
		for _, name := range statementNames(t) {
			if unplanned[name] {
				continue
			}
			query, known := postgres.Statements[name]
			want, planned := indexes[name]
			if !known || !planned {
				t.Errorf("%s has no plan to compare with", name)
				continue
			}
			plan, err := d.Explain(t.Context(), query, arguments(query))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, index := range want {
				if !strings.Contains(plan, index) {
					t.Errorf("with %s statistics %s does not use %s:\n%s", statistics, name, index, plan)
				}
			}
			if strings.Contains(plan, "Seq Scan on kv ") || strings.Contains(plan, "Seq Scan on kv_packed") || strings.Contains(plan, "Seq Scan on kv_marks") {
				t.Errorf("with %s statistics %s reads a whole table:\n%s", statistics, name, plan)
			}
			if whole := wholeIndex(plan); whole != "" {
				t.Errorf("with %s statistics %s reads a whole index (%s):\n%s", statistics, name, whole, plan)
			}
			if (strings.HasPrefix(name, "qLive") || strings.HasPrefix(name, "qPast") || name == "qReadEnded") && sortStep.MatchString(plan) {
				t.Errorf("with %s statistics %s sorts:\n%s", statistics, name, plan)
			}
		}
		wholePlan(t, d, statistics, "qWhole")
		wholePlan(t, d, statistics, "qListRevisions")
	}
	t.Run("depth", func(t *testing.T) { flatInDepth(t, d) })
	t.Run("trimming", func(t *testing.T) { trimInDepth(t, db, d) })
}

// wholePlan checks that everything is read in the order of pages, and that past rows
// are not visited for it.
func wholePlan(t *testing.T, d *postgres.Driver, statistics, name string) {
	query := postgres.Statements[name]
	plan, err := d.Explain(t.Context(), query, arguments(query), postgres.Statements["qWholeSettings"])
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"Bitmap Index Scan on kv_live", "Bitmap Index Scan on kv_ended"} {
		if !strings.Contains(plan, step) {
			t.Errorf("with %s statistics %s has no %s:\n%s", statistics, name, step, plan)
		}
	}
	for _, step := range []string{"Seq Scan", "kv_pkey", "kv_past", "JIT"} {
		if strings.Contains(plan, step) {
			t.Errorf("with %s statistics %s has a %s:\n%s", statistics, name, step, plan)
		}
	}
}

// TestPlansAreMadeAnew lets a table grow: sessions that planned for a small one are replaced.
func TestPlansAreMadeAnew(t *testing.T) {
	d := newDatabase(t, postgres.Config{}).Open(t).(*postgres.Driver)
	n := 0
	grow := func(rows int) int64 {
		t.Helper()
		for range rows / 100 {
			batch := make([]sqlstore.Txn, 100)
			for i := range batch {
				n++
				batch[i].Ops = []sqlstore.Op{{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Name: fmt.Sprint(n)}, Value: []byte("{}")}}
			}
			if _, err := d.Apply(t.Context(), batch, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		return d.Sessions()
	}
	few := grow(900)
	if again := grow(0); again != few {
		t.Fatalf("%d sessions, then %d without a reason", few, again)
	}
	if more := grow(200); more == few {
		t.Error("with 1,100 rows the sessions of the empty table are in use")
	} else if still := grow(1000); still != more {
		t.Errorf("%d sessions at 1,100 rows, %d at 2,100", more, still)
	} else if much := grow(7000); much == still {
		t.Error("with 9,100 rows the sessions of 1,100 are in use")
	}
}

// wholeIndex finds a step that reads an index of kv from end to end.
func wholeIndex(plan string) string {
	steps := strings.Split(plan, "->")
	for _, step := range steps {
		scan := indexStep.FindString(step)
		if scan != "" && !strings.Contains(step, "Index Cond:") {
			return scan
		}
	}
	return ""
}

// flatInDepth compares pages of a snapshot a little way back with those of one as
// far back as the table goes.
func flatInDepth(t *testing.T, d *postgres.Driver) {
	page := func(revision int64) time.Duration {
		best := time.Hour
		for i := range 20 {
			began := time.Now()
			rows, err := d.Scan(context.Background(), sqlstore.ScanRequest{Resource: "pods", Namespace: fmt.Sprint("ns", i%10), Limit: 500, Revision: revision})
			if err != nil || len(rows) != 500 || rows[0].Revision > revision {
				t.Fatalf("a page at %d has %d rows, %v", revision, len(rows), err)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	if _, err := d.Bounds(t.Context()); err != nil {
		t.Fatal(err)
	}
	near, far := page(195000), page(20000)
	for round := 0; far > 4*near+20*time.Millisecond && round < 20; round++ { // the machine may be busy
		far = min(far, page(20000))
	}
	t.Logf("500 rows: %v at 5,000 revisions back, %v at 180,000", near, far)
	if far > 4*near+20*time.Millisecond {
		t.Errorf("a page far back costs %v, near by %v", far, near)
	}
}

func arguments(query string) (most int) {
	for _, m := range argument.FindAllStringSubmatch(query, -1) {
		n, _ := strconv.Atoi(m[1])
		most = max(most, n)
	}
	return most
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
