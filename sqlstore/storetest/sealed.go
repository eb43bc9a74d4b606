package storetest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// TestSealer is a Sealer of tests: it encrypts secrets with the first of its keys, and counts its calls.
type TestSealer struct {
	mu           sync.Mutex
	keys         []string
	seals, opens int
	down         error
}

// NewTestSealer seals with the first of some keys, and opens with all.
func NewTestSealer(keys ...string) *TestSealer { return &TestSealer{keys: keys} }

// SetKeys puts other keys in the place of those it has.
func (l *TestSealer) SetKeys(keys ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = keys
}

// Fail makes everything fail with an error, until nil.
func (l *TestSealer) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = err
}

// Counts returns the numbers of calls of Seal and Open since its last call.
func (l *TestSealer) Counts() (seals, opens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seals, opens, l.seals, l.opens = l.seals, l.opens, 0, 0
	return seals, opens
}

// Covers implements sqlstore.Sealer.
func (l *TestSealer) Covers(resource string) bool { return resource == "secrets" }

// Seal implements sqlstore.Sealer.
func (l *TestSealer) Seal(_ context.Context, key sqlstore.Key, plain []byte) ([]byte, error) {
	if key.Resource != "secrets" {
		return plain, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seals++
	if l.down != nil {
		return nil, &sqlstore.SealError{Key: key, Provider: "test", KeyName: l.keys[0], Err: l.down}
	}
	return append(append([]byte(sqlstore.SealHead("test", l.keys[0])), tag(l.keys[0], key, plain)...), hide(l.keys[0], plain)...), nil
}

// Open implements sqlstore.Sealer.
func (l *TestSealer) Open(_ context.Context, key sqlstore.Key, stored []byte) ([]byte, bool, error) {
	provider, name, head, sealed := sqlstore.SealedBy(stored)
	if !sealed {
		return stored, key.Resource == "secrets", nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opens++
	fail := func(why error) ([]byte, bool, error) {
		return nil, false, &sqlstore.UnsealError{Key: key, Provider: provider, KeyName: name, Err: why}
	}
	if l.down != nil {
		return fail(l.down)
	}
	for _, have := range l.keys {
		if have != name || len(stored) < head+sha256.Size {
			continue
		}
		plain := hide(have, stored[head+sha256.Size:])
		if !hmac.Equal(tag(have, key, plain), stored[head:head+sha256.Size]) {
			return fail(errors.New("it was sealed for another key"))
		}
		return plain, have != l.keys[0], nil
	}
	return fail(errors.New("no such key"))
}

func tag(secret string, key sqlstore.Key, plain []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(h, "%q %q %q ", key.Resource, key.Namespace, key.Name)
	h.Write(plain)
	return h.Sum(nil)
}

func hide(secret string, text []byte) []byte {
	out := bytes.Clone(text)
	for i := range out {
		if i%sha256.Size == 0 {
			secret = fmt.Sprintf("%x", sha256.Sum256([]byte(secret)))
		}
		out[i] ^= secret[i%sha256.Size] | 0x80
	}
	return out
}

// loot is the plain text that the table must not contain.
const loot = "the very secret words"

func secret(name string) sqlstore.Key { return key("secrets", "default", name) }

// wantHidden fails if the value of any row in the table, past ones too, reveals a secret.
func wantHidden(t testing.TB, d sqlstore.Driver) {
	t.Helper()
	for _, c := range changes(t, d, 0) {
		_, _, _, sealed := sqlstore.SealedBy(c.Value)
		if sealed != (c.Key.Resource == "secrets") || strings.Contains(string(c.Value), loot) && sealed {
			t.Errorf("%s at revision %d is stored as %.60q", c.Key, c.Revision, c.Value)
		}
	}
}

func wantLoot(t testing.TB, what string, c *sqlstore.Row, value string) {
	t.Helper()
	if c.Unopened != nil || string(c.Value) != value {
		t.Errorf("%s: %s at revision %d is %.60q, %v; want %q", what, c.Key, c.Revision, c.Value, c.Unopened, value)
	}
}

var sealedTests = map[string]func(*testing.T, Database){
	"values are stored encrypted, and shown as they are": func(t *testing.T, db Database) {
		d, keys := db.Open(t), NewTestSealer("one")
		s := serve(t, d, sqlstore.Config{Sealer: keys})
		write(t, s, create(secret("a"), loot).Ops[0], create(pod("p"), "plain").Ops[0], create(key("~ips", "", "10.0.0.1"), "claim").Ops[0])
		write(t, s, update(secret("a"), 1, loot+"!").Ops...)
		write(t, s, remove(secret("a"), 4, loot+"?").Ops...)
		if seals, opens := keys.Counts(); seals != 3 || opens != 0 {
			t.Errorf("three writes of a secret took %d seals and %d opens", seals, opens)
		}
		for i, want := range []string{loot, "plain", "claim", loot + "!", loot + "?"} {
			wantLoot(t, "the feed", &s.Log(t)[i].Row, want)
		}
		wantHidden(t, d)
		log, err := s.Changes(t.Context(), 0, 10, true)
		if err != nil || len(log) != 5 {
			t.Fatal(len(log), err)
		}
		wantLoot(t, "the log", &log[4].Row, loot+"?")
		if string(log[4].PrevValue) != loot+"!" || log[4].PrevUnopened != nil {
			t.Errorf("before that it was %q, %v", log[4].PrevValue, log[4].PrevUnopened)
		}
		rows, err := s.Scan(t.Context(), sqlstore.ScanRequest{Resource: "secrets", Limit: 5, Revision: 3})
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		wantLoot(t, "a page", &rows[0], loot)
		row, err := s.Read(t.Context(), secret("a"), 4)
		if err != nil {
			t.Fatal(err)
		}
		wantLoot(t, "a row", &row, loot+"!")
	},
	"another server's feed, and all rows at once": func(t *testing.T, db Database) {
		a, b := serve(t, db.Open(t), sqlstore.Config{Sealer: NewTestSealer("one")}), serve(t, db.Open(t), sqlstore.Config{Sealer: NewTestSealer("two", "one")})
		for i := range 5 {
			write(t, a, create(secret(fmt.Sprint(i)), loot).Ops...)
		}
		waitFor(t, "the other server", func() bool { return len(b.Log(t)) == 5 })
		for i := range 5 {
			wantLoot(t, "the other server", &b.Log(t)[i].Row, loot)
		}
		var mu sync.Mutex
		found := 0
		err := b.ReadAll(t.Context(), 5, func(rows []sqlstore.Row) error {
			mu.Lock()
			defer mu.Unlock()
			for i := range rows {
				wantLoot(t, "all", &rows[i], loot)
				found++
			}
			return nil
		})
		if err != nil || found != 5 {
			t.Errorf("%d of 5 rows: %v", found, err)
		}
	},
	"unreadable values are reported, and block no others": func(t *testing.T, db Database) {
		a := serve(t, db.Open(t), sqlstore.Config{Sealer: NewTestSealer("new", "old")})
		keys := NewTestSealer("old")
		b := serve(t, db.Open(t), sqlstore.Config{Sealer: keys})
		write(t, a, create(secret("a"), loot).Ops...)
		write(t, b, create(secret("b"), loot).Ops...)
		write(t, b, create(pod("p"), "plain").Ops...)
		waitFor(t, "all changes", func() bool { return len(b.Log(t)) == 3 })
		closed := b.Log(t)[0]
		var why *sqlstore.UnsealError
		if !errors.As(closed.Unopened, &why) || why.Key != secret("a") || why.Provider != "test" || why.KeyName != "new" || strings.Contains(why.Error(), loot) {
			t.Fatalf("a value under an unknown key: %+v", closed)
		}
		wantLoot(t, "beside it", &b.Log(t)[1].Row, loot)
		rows, err := b.Scan(t.Context(), sqlstore.ScanRequest{Limit: 10})
		if err != nil || len(rows) != 3 || rows[0].Unopened != nil || rows[1].Unopened == nil || rows[2].Unopened != nil {
			t.Fatalf("a page with it: %+v, %v", rows, err)
		}
		// It may be deleted unread, as it is stored.
		keys.Counts()
		write(t, b, sqlstore.Op{Verb: sqlstore.Delete, Key: secret("a"), Expect: 1, Value: closed.Value, AsStored: true})
		if seals, _ := keys.Counts(); seals != 0 {
			t.Errorf("what was encrypted was encrypted again")
		}
		waitFor(t, "the delete", func() bool { return len(a.Log(t)) == 4 })
		wantLoot(t, "who has the key", &a.Log(t)[3].Row, loot)
		if last := b.Log(t)[3]; !errors.As(last.Unopened, &why) || !bytes.Equal(last.Value, closed.Value) {
			t.Errorf("who has it not: %+v", last)
		}
		// The key comes back.
		keys.SetKeys("old", "new")
		if plain, err := b.Open(t.Context(), secret("a"), closed.Value); err != nil || string(plain) != loot {
			t.Errorf("with the key: %q, %v", plain, err)
		}
	},
	"a value in another row": func(t *testing.T, db Database) {
		d := db.Open(t)
		s := serve(t, d, sqlstore.Config{Sealer: NewTestSealer("one")})
		write(t, s, create(secret("a"), loot).Ops[0], create(secret("b"), "other").Ops[0])
		apply(t, db.Open(t), update(secret("a"), 1, string(changes(t, d, 1)[0].Value)))
		waitFor(t, "the feed", func() bool { return len(s.Log(t)) == 3 })
		var why *sqlstore.UnsealError
		if row, err := s.Read(t.Context(), secret("a"), 0); err != nil || !errors.As(row.Unopened, &why) || !errors.As(s.Log(t)[2].Unopened, &why) {
			t.Errorf("%+v, %v", row, err)
		}
	},
	"no keys": func(t *testing.T, db Database) {
		d, keys := db.Open(t), NewTestSealer("one")
		s := serve(t, d, sqlstore.Config{Sealer: keys})
		write(t, s, create(secret("a"), loot).Ops...)
		keys.Fail(errors.New("the key server is away"))
		var why *sqlstore.SealError
		for _, ops := range [][]sqlstore.Op{create(secret("b"), loot).Ops, update(secret("a"), 1, loot).Ops, join(create(pod("p"), "x"), create(secret("c"), loot)).Ops} {
			if _, err := s.Write(t.Context(), ops...); !errors.As(err, &why) || strings.Contains(err.Error(), loot) {
				t.Fatalf("a write gave %v", err)
			}
		}
		wantBounds(t, d, 0, 1)
		write(t, s, create(pod("p"), "x").Ops...)
		// A delete needs no key, and stores no plain text; one at another revision gets its conflict.
		var conflict *sqlstore.ConflictError
		if _, err := s.Write(t.Context(), remove(secret("a"), 7, loot).Ops...); !errors.As(err, &conflict) || conflict.Current.Revision != 1 {
			t.Fatalf("a delete at another revision gave %v", err)
		}
		write(t, s, remove(secret("a"), 1, loot+" at last").Ops...)
		wantLoot(t, "the delete", &s.Log(t)[2].Row, loot+" at last")
		wantHidden(t, d)
		var gone *sqlstore.NotFoundError
		if _, err := s.Write(t.Context(), remove(secret("a"), 1, loot).Ops...); !errors.As(err, &gone) {
			t.Fatalf("a delete of what is not there gave %v", err)
		}
	},
	"stale": func(t *testing.T, db Database) {
		d, keys := db.Open(t), NewTestSealer("one")
		plain := serve(t, d, sqlstore.Config{})
		write(t, plain, create(secret("old"), loot).Ops[0], create(pod("p"), "x").Ops[0])
		if plain.Stale(t.Context(), secret("old"), 1) || plain.Sealed() {
			t.Error("a store that encrypts nothing calls a row stale")
		}
		plain.stop()
		s := serve(t, d, sqlstore.Config{Sealer: keys})
		write(t, s, create(secret("a"), loot).Ops...)
		for i := range 2 {
			want := fmt.Sprint(true, false, i == 1, false)
			got := fmt.Sprint(s.Stale(t.Context(), secret("old"), 1), s.Stale(t.Context(), pod("p"), 2), s.Stale(t.Context(), secret("a"), 3), s.Stale(t.Context(), secret("a"), 2))
			if got != want {
				t.Errorf("round %d: stale %s, want %s", i, got, want)
			}
			keys.SetKeys("two", "one")
		}
		keys.SetKeys("two")
		if !s.Stale(t.Context(), secret("a"), 3) {
			t.Error("a row that cannot be opened is not stale")
		}
	},
	"what expires takes no key": func(t *testing.T, db Database) {
		d, keys := db.Open(t), NewTestSealer("one")
		first := serve(t, d, sqlstore.Config{Sealer: keys})
		for _, name := range []string{"a", "b"} {
			write(t, first, sqlstore.Op{Verb: sqlstore.Create, Key: secret(name), Value: []byte(loot), ExpiresAt: start.Add(time.Second)})
			keys.SetKeys("two", "one")
		}
		first.stop()
		keys = NewTestSealer("two")
		later := serve(t, d, sqlstore.Config{Sealer: keys, Retention: 48 * time.Hour, LogRetention: 48 * time.Hour, ExpireEvery: time.Millisecond, Clock: func() time.Time { return start.Add(time.Hour) }})
		waitFor(t, "expiry", func() bool { return len(later.Log(t)) == 2 })
		for _, c := range later.Log(t) {
			if c.Key == secret("b") {
				wantLoot(t, "the end", &c.Row, loot)
			} else if c.Unopened == nil {
				t.Errorf("%s was opened without its key", c.Key)
			}
		}
		if seals, _ := keys.Counts(); seals != 0 {
			t.Errorf("%d values were encrypted to be deleted", seals)
		}
		wantHidden(t, d)
	},
	"rewriting": func(t *testing.T, db Database) {
		d, keys := db.Open(t), NewTestSealer("one")
		for i := range 230 {
			name := fmt.Sprintf("%03d", i)
			stored, err := keys.Seal(t.Context(), secret(name), []byte(loot))
			if err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 {
				stored = []byte(loot) // from before anything was encrypted
			}
			op := sqlstore.Op{Verb: sqlstore.Create, Key: secret(name), Value: stored, ExpiresAt: start.Add(24 * time.Hour)}
			must(t, d, sqlstore.Txn{Ops: []sqlstore.Op{op}})
		}
		must(t, d, create(pod("p"), "older form"))
		must(t, d, create(key("~ips", "", "10.0.0.1"), "claim"))
		lost, err := NewTestSealer("lost").Seal(t.Context(), secret("lost"), []byte(loot))
		if err != nil {
			t.Fatal(err)
		}
		must(t, d, create(secret("lost"), string(lost)))
		keys.SetKeys("two", "one")
		var pages []upkeep.Rewritten
		job := upkeep.Rewrite{Resources: []string{"secrets"}, Keys: keys, Progress: func(r upkeep.Rewritten) { pages = append(pages, r) }, Form: func(row *sqlstore.Row) ([]byte, error) {
			return bytes.TrimPrefix(row.Value, []byte("older ")), nil
		}}
		// Cut short, and begun again.
		ctx, cancel := context.WithCancel(t.Context())
		first := job
		first.Progress = func(upkeep.Rewritten) { cancel() }
		if cut, err := first.Run(ctx, d); !errors.Is(err, context.Canceled) || cut.Written != 200 {
			t.Fatalf("cut short it has done %+v, %v", cut, err)
		}
		// Two pages of live rows, and one of past ones where these can be written; then all again, to see
		// that nothing is left.
		wantPast, wantPages := int64(0), 4
		if restates(t, d) {
			wantPast, wantPages = 230, 6
		}
		done, err := job.Run(t.Context(), d)
		if err != nil || done.Objects != 231 || done.Written != 30 || done.Left != 1 || len(done.Reasons) != 1 || done.Reasons[0].Key != "secrets/default/lost" || done.PastWritten != wantPast || done.PastLeft != 0 || len(pages) != wantPages {
			t.Fatalf("begun again it has done %+v in %d pages, %v", done, len(pages), err)
		}
		for _, row := range scanAll(t, d, sqlstore.ScanRequest{Resource: "secrets", Limit: 100}) {
			_, name, _, _ := sqlstore.SealedBy(row.Value)
			if row.Key.Name == "lost" {
				continue
			}
			if name != "two" || row.Revision == row.Created || !row.ExpiresAt.Equal(start.Add(24*time.Hour)) {
				t.Fatalf("%s is under %q: %+v", row.Key, name, row)
			}
		}
		all := upkeep.Rewrite{Keys: keys, Form: job.Form}
		if done, err := all.Run(t.Context(), d); err != nil || done.Written != 1 || done.Objects != 232 {
			t.Fatalf("of all it has done %+v, %v", done, err)
		}
		keys.SetKeys("three", "two")
		keys.Fail(errors.New("away"))
		if done, err := all.Run(t.Context(), d); err != nil || done.Left != 231 {
			t.Fatalf("without keys it has done %+v, %v", done, err)
		}
	},
	"own commits are known though their answer was lost": func(t *testing.T, db Database) {
		keys := NewTestSealer("one")
		s := serve(t, &disconnecting{Driver: db.Open(t)}, sqlstore.Config{MaxBatch: 4, Sealer: keys})
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range 5 {
					if _, err := s.Write(t.Context(), create(secret(fmt.Sprintf("%d-%d", w, i)), loot).Ops...); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for _, c := range s.Log(t) {
			wantLoot(t, "the feed", &c.Row, loot)
		}
		if _, opens := keys.Counts(); opens != 0 {
			t.Errorf("own values were opened %d times", opens)
		}
	},
}
