package sqlite_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// BenchmarkChecksum creates objects of 1 KB in groups, with the checksum of each row and without, in turns: each operation is
// a hundred groups both ways. The disk is not waited for, which would hide the difference.
func BenchmarkChecksum(b *testing.B) {
	value := append(append([]byte(`{"data":"`), bytes.Repeat([]byte("a"), 1000)...), `"}`...)
	for _, size := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("rows=%d", size), func(b *testing.B) {
			var open [2]*sqlite.Driver
			for i := range open {
				open[i] = file{path: filepath.Join(b.TempDir(), "test.db"), cfg: sqlite.Config{Unsynced: true}}.Open(b).(*sqlite.Driver)
			}
			var took [2]time.Duration
			created, rounds := 0, 0
			for b.Loop() {
				groups := make([][]sqlstore.Op, 100)
				for g := range groups {
					for range size {
						created++
						key := sqlstore.Key{Resource: "configmaps", Namespace: "default", Name: fmt.Sprint("c", created*7919%1_000_003)}
						groups[g] = append(groups[g], sqlstore.Op{Verb: sqlstore.Create, Key: key, Value: value})
					}
				}
				for i := range open {
					summed := (i + rounds) % 2 // the first one changes
					began := time.Now()
					if err := open[summed].CreateGroups(groups, summed == 1); err != nil {
						b.Fatal(err)
					}
					took[summed] += time.Since(began)
				}
				rounds++
			}
			rows := float64(rounds * 100 * size)
			b.ReportMetric(float64(took[0].Nanoseconds())/rows, "without-ns/row")
			b.ReportMetric(float64(took[1].Nanoseconds())/rows, "with-ns/row")
			b.ReportMetric(float64(took[1])/float64(took[0]), "with/without")
		})
	}
}

// BenchmarkChecksumAlone computes the checksum of one row of 1 KB.
func BenchmarkChecksumAlone(b *testing.B) {
	value := bytes.Repeat([]byte("a"), 1000)
	var sums sqlstore.Checksummer
	for b.Loop() {
		sums.Partial("configmaps", "default", "an-object-of-some-length", false, value, nil, 1)
	}
}
