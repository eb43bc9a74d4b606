package encryption_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption"
	"github.com/rowlock/rowlock/sqlstore/encryption/kms/kmstest"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

type discard struct{}

func (discard) Apply([]sqlstore.Change) {}

// BenchmarkCreates writes secrets of 1 KB into SQLite by 32 writers, as they are and by each
// provider.
func BenchmarkCreates(b *testing.B) {
	const key = `{"keys":[{"name":"k","secret":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}]}`
	endpoint := kmstest.New("k").Serve(b)
	for _, c := range []struct{ name, provider string }{
		{"plain", ""}, {"aesgcm", `{"aesgcm":` + key + `}`}, {"aescbc", `{"aescbc":` + key + `}`}, {"secretbox", `{"secretbox":` + key + `}`},
		{"kmsv2", fmt.Sprintf(`{"kms":{"apiVersion":"v2","name":"k","endpoint":%q}}`, endpoint)},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg := sqlstore.Config{}
			if c.provider != "" {
				path := filepath.Join(b.TempDir(), "config.json")
				text := `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration","resources":[{"resources":["secrets"],"providers":[` + c.provider + `]}]}`
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					b.Fatal(err)
				}
				set, err := encryption.Open(b.Context(), encryption.Config{Path: path})
				if err != nil {
					b.Fatal(err)
				}
				defer set.Close()
				cfg.Sealer = set
			}
			benchCreates(b, cfg)
		})
	}
}

func benchCreates(b *testing.B, cfg sqlstore.Config) {
	d, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), sqlite.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	s := sqlstore.New(d, cfg)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, 0, discard{}) }()
	value := append(append([]byte(`{"data":"`), bytes.Repeat([]byte("a"), 1000)...), `"}`...)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range 32 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				op := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "secrets", Namespace: "n", Name: fmt.Sprint(i)}, Value: value}
				if _, err := s.Write(ctx, op); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
