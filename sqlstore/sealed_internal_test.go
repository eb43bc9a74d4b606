package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestAttachSealed: a change found in the table that is an own write, whose outcome has not been
// delivered yet, has the value that was written, which is not decrypted.
func TestAttachSealed(t *testing.T) {
	key, other := Key{Resource: "secrets", Name: "a"}, Key{Resource: "secrets", Name: "b"}
	aux := &struct{ n int }{}
	w := &write{
		txn:   Txn{Ops: []Op{{Verb: Create, Key: key, Value: []byte("sealed"), Aux: aux}}},
		plain: []opened{{value: []byte("plain")}},
	}
	changes := []Change{
		{Row: Row{Key: key, Revision: 1, Value: []byte("sealed")}},
		{Row: Row{Key: other, Revision: 2, Value: []byte("sealed")}},
		{Row: Row{Key: key, Revision: 3, Value: []byte("sealed")}, PrevRevision: 1},
	}
	own := attach(changes, []*write{w})
	if len(own) != 3 || !own[0] || own[1] || own[2] {
		t.Fatalf("own writes are %v", own)
	}
	if string(changes[0].Value) != "plain" || changes[0].Aux != any(aux) || string(changes[1].Value) != "sealed" || changes[2].Aux != nil {
		t.Errorf("the changes are %+v", changes)
	}
}

// slowSealer takes a while of its clock to refuse.
type slowSealer struct {
	now   time.Duration
	takes time.Duration
	asked int
}

func (s *slowSealer) Covers(string) bool { return true }

func (s *slowSealer) Seal(_ context.Context, _ Key, plain []byte) ([]byte, error) { return plain, nil }

func (s *slowSealer) Open(context.Context, Key, []byte) ([]byte, bool, error) {
	s.asked++
	s.now += s.takes
	return nil, false, context.DeadlineExceeded
}

// TestSlowKeys: a key server that took long to fail is not asked for each row.
func TestSlowKeys(t *testing.T) {
	for _, c := range []struct {
		provider string
		takes    time.Duration
		asked    int
	}{{"kmsv2", 3 * time.Second, 2}, {"kmsv2", time.Millisecond, 20}, {"aesgcm", 3 * time.Second, 20}} {
		sealer := &slowSealer{takes: c.takes}
		s := New(&goneDriver{}, Config{Sealer: sealer, Clock: time.Now, Elapsed: func() time.Duration { return sealer.now }})
		value := []byte(SealHead(c.provider, "k") + "x")
		for i := range 20 {
			var why *UnsealError
			if _, err := s.Open(t.Context(), Key{Resource: "secrets", Name: "a"}, value); !errors.As(err, &why) || why.KeyName != "k" || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrKeyUnavailable) {
				t.Fatalf("%d: %v", i, err)
			}
			if i == 9 {
				sealer.now += slowPause
			}
		}
		if sealer.asked != c.asked {
			t.Errorf("%s that takes %s was asked %d times, want %d", c.provider, c.takes, sealer.asked, c.asked)
		}
	}
}

// keyServer decrypts one value at a time for each caller, and counts concurrent callers.
type keyServer struct {
	slowSealer
	mu         sync.Mutex
	here, most int
	full       chan struct{} // closed when so many are there as may be
	filled     sync.Once
}

func (k *keyServer) Open(ctx context.Context, _ Key, stored []byte) ([]byte, bool, error) {
	if !bytes.HasPrefix(stored, oneCallEach) {
		return stored, false, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	k.mu.Lock()
	k.here++
	if k.most = max(k.most, k.here); k.here == atOnce {
		k.filled.Do(func() { close(k.full) })
	}
	k.mu.Unlock()
	<-k.full
	k.mu.Lock()
	k.here--
	k.mu.Unlock()
	return stored[len(SealHead("kmsv1", "k")):], false, nil
}

// TestOneCallEach: values that each cost a call are opened several at once, in whatever
// order, and each finds its row; so are those of a page of changes.
func TestOneCallEach(t *testing.T) { synctest.Test(t, openedAtOnce) } // in real time the feed may give up waiting

func openedAtOnce(t *testing.T) {
	sealer := &keyServer{full: make(chan struct{})}
	s := New(&goneDriver{}, Config{Sealer: sealer})
	var rows []Row
	var changes []Change
	sealed := func(text string) []byte { return []byte(SealHead("kmsv1", "k") + text) }
	for i := range 2 * atOnce {
		key := Key{Resource: "secrets", Name: strconv.Itoa(i)}
		if value := sealed(key.Name); i%4 == 0 {
			rows = append(rows, Row{Key: key, Value: []byte(key.Name)})
		} else {
			rows = append(rows, Row{Key: key, Value: value})
		}
		changes = append(changes, Change{Row: Row{Key: key, Value: sealed(key.Name)}, PrevValue: sealed("before " + key.Name)})
	}
	s.openRows(t.Context(), rows)
	own := make([]bool, len(changes))
	own[3] = true
	for range atOnce { // readers have all their places
		s.readSlots <- struct{}{}
	}
	(&feed{Store: s}).openFed(t.Context(), changes, own)
	for i := range rows {
		name := rows[i].Key.Name
		if string(rows[i].Value) != name || (string(changes[i].Value) == name) == own[i] || string(changes[i].PrevValue) != "before "+name {
			t.Errorf("%s: %q, %q, %q", name, rows[i].Value, changes[i].Value, changes[i].PrevValue)
		}
	}
	if sealer.most != atOnce {
		t.Errorf("%d at once, want %d", sealer.most, atOnce)
	}
}
