package sqlstore

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestAttachSealed: a change found in the table that is an own write, whose outcome is not
// told yet, is shown with the value that was written, which is not decrypted.
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

// slowSealer takes a while by its clock to say no.
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
