package storetest

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

var (
	seed  = flag.Uint64("storetest.seed", 1, "seed of the model test; 0: another each time")
	steps = flag.Int("storetest.steps", 300, "steps of the model test")
)

var historyKeys = []sqlstore.Key{
	key("pods", "default", "a"), key("pods", "default", "b"), key("pods", "kube-system", "a"), key("nodes", "", "a"), key("nodes", "", "b"), key("deployments.apps", "default", "a"),
}

// history writes the same lively past of n revisions to several drivers: each
// key is created, updated, deleted and created again in turn.
func history(t testing.TB, n int, drivers ...sqlstore.Driver) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	newest := make(map[sqlstore.Key]int64)
	for i := range n {
		k := historyKeys[rng.IntN(len(historyKeys))]
		value := fmt.Sprint("value ", i)
		txn := create(k, value)
		if r := newest[k]; r != 0 && rng.IntN(4) == 0 {
			txn = remove(k, r, value)
		} else if r != 0 {
			txn = update(k, r, value)
		}
		for _, d := range drivers {
			newest[k] = must(t, d, txn)
		}
		if txn.Ops[0].Verb == sqlstore.Delete {
			newest[k] = 0
		}
	}
}

// runModel runs random operations on a driver and on the one in memory, and compares every answer. A
// failure prints the seed with which it can be repeated.
func runModel(t *testing.T, fresh func(testing.TB) Database) {
	s := cmp.Or(*seed, rand.Uint64())
	t.Logf("repeat with -storetest.seed=%d -storetest.steps=%d", s, *steps)
	db := fresh(t)
	p := &player{T: t, rng: rand.New(rand.NewPCG(s, 0)), db: db, driver: db.Open(t), model: newModel(), now: start}
	moves := []func(){p.apply, p.apply, p.apply, p.apply, p.scan, p.scan, p.read, p.past, p.changes, p.trim, p.keep, p.pack, p.older, p.expired, p.revisionAt, p.bounds, p.pass}
	for i := range *steps {
		if i%100 == 99 {
			p.driver.Close()
			p.driver = db.Open(t)
		}
		moves[p.rng.IntN(len(moves))]()
	}
}

type player struct {
	*testing.T
	rng    *rand.Rand
	db     Database
	driver sqlstore.Driver
	model  *memory.Driver
	now    time.Time
}

func (p *player) pass() { p.now = p.now.Add(time.Duration(p.rng.IntN(1000)) * time.Millisecond) }

func (p *player) key() sqlstore.Key {
	k := historyKeys[p.rng.IntN(len(historyKeys))]
	k.Name += string(rune('a' + p.rng.IntN(3)))
	return k
}

func (p *player) revision() int64 {
	b := boundsOf(p, p.model)
	return b.Floor - 2 + p.rng.Int64N(b.Head-b.Floor+4)
}

// op is right more often than not.
func (p *player) op() sqlstore.Op {
	op := sqlstore.Op{Key: p.key(), Value: make([]byte, p.rng.IntN(64))}
	for i := range op.Value {
		op.Value[i] = byte(p.rng.Uint32())
	}
	if p.rng.IntN(4) == 0 {
		op.ExpiresAt = p.now.Add(time.Duration(p.rng.IntN(5000)) * time.Millisecond)
	}
	row, missing := p.model.Read(p.Context(), op.Key, 0)
	op.Verb = sqlstore.Verb(1 + p.rng.IntN(3))
	if missing == nil && p.rng.IntN(8) > 0 {
		op.Verb, op.Expect = sqlstore.Verb(2+p.rng.IntN(2)), row.Revision
	} else if missing != nil && p.rng.IntN(8) > 0 {
		op.Verb = sqlstore.Create
	} else {
		op.Expect = p.rng.Int64N(boundsOf(p, p.model).Head + 2)
	}
	return op
}

func (p *player) apply() {
	batch := make([]sqlstore.Txn, 1+p.rng.IntN(6))
	for i := range batch {
		used := make(map[sqlstore.Key]bool)
		for range 1 + p.rng.IntN(3)*p.rng.IntN(2) {
			if op := p.op(); !used[op.Key] {
				used[op.Key] = true
				batch[i].Ops = append(batch[i].Ops, op)
			}
		}
	}
	want := applyAt(p, p.model, p.now, batch...)
	got := applyAt(p, p.driver, p.now, batch...)
	for i := range want {
		if want[i].Err != nil {
			wantErr(p, got[i].Err, want[i].Err)
		} else if got[i].Err != nil || fmt.Sprint(got[i].Revisions, got[i].Created) != fmt.Sprint(want[i].Revisions, want[i].Created) {
			p.Fatalf("outcome %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// compare returns false if both failed in the same way.
func (p *player) compare(got, want error) bool {
	p.Helper()
	if want == nil && got == nil {
		return true
	}
	if want == nil {
		p.Fatalf("error is %v, want none", got)
	}
	wantErr(p, got, want)
	return false
}

func (p *player) scan() {
	req := sqlstore.ScanRequest{Limit: 1 + p.rng.IntN(10)}
	if p.rng.IntN(2) == 0 {
		req.Resource = p.key().Resource
	}
	if p.rng.IntN(2) == 0 {
		req.Namespace = p.key().Namespace
	}
	if p.rng.IntN(2) == 0 {
		req.After = p.key()
	}
	if p.rng.IntN(3) > 0 {
		req.Revision = max(0, p.revision())
	}
	if p.rng.IntN(2) == 0 {
		req.Bytes = 1 + p.rng.IntN(100)
	}
	want, wantE := p.model.Scan(p.Context(), req)
	got, gotE := p.driver.Scan(p.Context(), req)
	if p.compare(gotE, wantE) {
		wantRows(p, got, want)
	}
}

func (p *player) read() {
	k, revision := p.key(), max(0, p.revision())
	want, wantE := p.model.Read(p.Context(), k, revision)
	got, gotE := p.driver.Read(p.Context(), k, revision)
	if p.compare(gotE, wantE) {
		wantRow(p, got, want)
	}
}

func (p *player) past() {
	k, before, limit := p.key(), max(0, p.revision()), 1+p.rng.IntN(5)
	want, wantE := p.model.Past(p.Context(), k, before, limit)
	got, gotE := p.driver.Past(p.Context(), k, before, limit)
	if p.compare(gotE, wantE) {
		wantRows(p, got, want)
	}
}

func (p *player) changes() {
	after, limit, previous := max(0, p.revision()), 1+p.rng.IntN(20), p.rng.IntN(2) == 0
	want, wantE := p.model.Changes(p.Context(), after, limit, previous)
	got, gotE := p.driver.Changes(p.Context(), after, limit, previous)
	if !p.compare(gotE, wantE) {
		return
	}
	if len(got) != len(want) {
		p.Fatalf("%d changes after %d, want %d", len(got), after, len(want))
	}
	for i := range got {
		wantChange(p, got[i], want[i], previous)
	}
}

// trim deletes everything at once: which rows go first is the driver's choice.
func (p *player) trim() {
	if p.rng.IntN(4) > 0 {
		return
	}
	to := p.revision()
	want, wantE := p.model.Trim(p.Context(), to, 1<<20)
	got, gotE := p.driver.Trim(p.Context(), to, 1<<20)
	if p.compare(gotE, wantE) && got > want { // it leaves packs alone
		p.Fatalf("Trim(%d) deleted %d, want %d", to, got, want)
	}
}

// keep raises floors, so that some of the rows trimmed before are packed.
func (p *player) keep() {
	to := sqlstore.Floors{Log: p.revision(), Past: map[string]int64{"": p.revision() - 40}}
	if p.rng.IntN(2) == 0 {
		to.Past[[]string{"pods", "nodes", "deployments", "deployments.apps"}[p.rng.IntN(4)]] = p.revision() - 20
	}
	retain(p, to, p.model, p.driver)
}

// pack makes some steps of a pass, which others go on with.
func (p *player) pack() {
	var from sqlstore.Cursor
	for range 1 + p.rng.IntN(5) {
		done, err := p.driver.Pack(p.Context(), from, 1+p.rng.IntN(60))
		if err != nil {
			p.Fatalf("Pack: %v", err)
		}
		from = done.Next
	}
	if p.rng.IntN(3) == 0 {
		forget(p, p.driver)
	}
}

func (p *player) older() {
	upTo := max(0, p.revision())
	wantRows(p, olderAll(p, p.driver, upTo, 3+p.rng.IntN(20)), olderAll(p, p.model, upTo, 1000))
}

func (p *player) expired() {
	want, wantE := p.model.Expired(p.Context(), p.now, 1000)
	got, gotE := p.driver.Expired(p.Context(), p.now, 1000)
	if p.compare(gotE, wantE) && len(got) != len(want) {
		p.Fatalf("expired rows are %s, want %s", names(got), names(want))
	}
}

func (p *player) revisionAt() {
	at := p.now.Add(-time.Duration(p.rng.IntN(10000)) * time.Millisecond)
	want, wantE := p.model.RevisionAt(p.Context(), at)
	got, gotE := p.driver.RevisionAt(p.Context(), at)
	if !p.compare(gotE, wantE) || got == want {
		return
	}
	// From before the log it is right to the second.
	least, _ := p.model.RevisionAt(p.Context(), at.Truncate(time.Second).Add(-time.Microsecond))
	if want > boundsOf(p, p.model).Floor || got > want || got < least {
		p.Fatalf("the revision at %s is %d, want %d, or %d at least", at, got, want, least)
	}
}

func (p *player) bounds() {
	b := boundsOf(p, p.model)
	wantBounds(p, p.driver, b.Floor, b.Head)
}
