package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// BoundedGrowth updates the same objects over and over, with as many past rows kept at any
// time, and sees that the database stops growing. each is called after each round.
func BoundedGrowth(t *testing.T, d sqlstore.Driver, each func()) {
	const objects, kept, rounds = 200, 400, 30
	var at [objects]int64
	var sizes [rounds]int64
	letters := rand.NewPCG(1, 2)
	for round := range rounds {
		var batch []sqlstore.Txn
		for i := range objects {
			key := sqlstore.Key{Resource: "pods", Namespace: "default", Name: fmt.Sprint(i * 7919 % objects)}
			op := sqlstore.Op{Verb: sqlstore.Update, Key: key, Expect: at[i], Value: make([]byte, 2500+(i*31+round*17)%1000)}
			for j := range op.Value { // nothing that could be compressed
				op.Value[j] = byte(letters.Uint64())
			}
			if round == 0 {
				op.Verb = sqlstore.Create
			}
			batch = append(batch, sqlstore.Txn{Ops: []sqlstore.Op{op}})
		}
		out, err := d.Apply(t.Context(), batch, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for i := range out {
			if out[i].Err != nil {
				t.Fatal(out[i].Err)
			}
			at[i] = out[i].Revisions[0]
		}
		for n := 50; n == 50; {
			if n, err = d.Trim(t.Context(), at[objects-1]-kept, 50); err != nil {
				t.Fatal(err)
			}
		}
		each()
		s, err := d.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sizes[round] = s.Bytes
	}
	if soon, end := sizes[9], sizes[rounds-1]; end > soon+soon/10 {
		t.Errorf("the database has %d bytes after 10 rounds, %d after %d", soon, end, rounds)
	}
	CheckTable(t, d)
}
