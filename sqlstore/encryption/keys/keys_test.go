package keys_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/encryption/keys"
)

type maker struct {
	name string
	size []int
	make func([]byte) (keys.Key, error)
}

var makers = []maker{
	{"aesgcm", []int{16, 24, 32}, keys.AESGCM},
	{"aescbc", []int{16, 24, 32}, keys.AESCBC},
	{"secretbox", []int{32}, keys.Secretbox},
	{"seed", []int{32}, keys.FromSeed},
	{"once", []int{16, 24, 32}, keys.Once},
}

func each(t *testing.T, test func(t *testing.T, key, other keys.Key)) {
	for _, m := range makers {
		for _, size := range m.size {
			t.Run(fmt.Sprint(m.name, size), func(t *testing.T) {
				key, err := m.make(bytes.Repeat([]byte{7}, size))
				if err != nil {
					t.Fatal(err)
				}
				other, err := m.make(bytes.Repeat([]byte{8}, size))
				if err != nil {
					t.Fatal(err)
				}
				test(t, key, other)
			})
		}
	}
}

func TestSizes(t *testing.T) {
	for _, m := range makers {
		good := map[int]bool{}
		for _, size := range m.size {
			good[size] = true
		}
		for size := range 70 {
			if _, err := m.make(make([]byte, size)); (err == nil) != good[size] {
				t.Errorf("%s of %d bytes: %v", m.name, size, err)
			}
		}
	}
}

// TestSealed: values of every length come back whole, appended to the buffer; the same value encrypts twice to
// different bytes, which contain nothing of it.
func TestSealed(t *testing.T) {
	each(t, func(t *testing.T, key, _ keys.Key) {
		for size := range 100 {
			plain := bytes.Repeat([]byte("x"), size)
			one, two := key.Seal([]byte("head"), plain, []byte("row")), key.Seal(nil, plain, []byte("row"))
			rest, ok := bytes.CutPrefix(one, []byte("head"))
			if !ok || len(rest) > size+key.Overhead() || bytes.Equal(rest, two) || bytes.Contains(one, []byte("xxxx")) {
				t.Fatalf("%d bytes: %q, %q", size, one, two)
			}
			back, err := key.Open(rest, []byte("row"))
			if err != nil || !bytes.Equal(back, plain) {
				t.Fatalf("%d bytes: %q, %v", size, back, err)
			}
		}
	})
}

// TestBroken: nothing opens that was not sealed so: for another row, with another key, cut
// short, made longer, or with one bit turned.
func TestBroken(t *testing.T) {
	each(t, func(t *testing.T, key, other keys.Key) {
		sealed := key.Seal(nil, []byte("a value of some blocks of text, say of three"), []byte("row"))
		refuse := func(what string, key keys.Key, sealed []byte, bound string) {
			t.Helper()
			if plain, err := key.Open(sealed, []byte(bound)); !errors.Is(err, keys.ErrBroken) || plain != nil {
				t.Fatalf("%s: %q, %v", what, plain, err)
			}
		}
		for _, bound := range []string{"", "ro", "row2", "Row", strings.Repeat("r", 1000)} {
			refuse("of "+bound, key, sealed, bound)
		}
		refuse("of another key", other, sealed, "row")
		for n := range sealed {
			refuse(fmt.Sprint("cut at ", n), key, sealed[:n], "row")
			turned := bytes.Clone(sealed)
			turned[n] ^= 1 << (n % 8)
			refuse(fmt.Sprint("turned at ", n), key, turned, "row")
		}
		refuse("longer", key, append(bytes.Clone(sealed), 0), "row")
		refuse("longer by a block", key, append(bytes.Clone(sealed), make([]byte, 16)...), "row")
	})
}

// TestKinds: a value sealed with one kind of key does not open with another kind and the same secret.
func TestKinds(t *testing.T) {
	secret := bytes.Repeat([]byte{7}, 32)
	for _, a := range makers {
		for _, b := range makers {
			if a.name == b.name {
				continue
			}
			one, _ := a.make(secret)
			two, _ := b.make(secret)
			if plain, err := two.Open(one.Seal(nil, []byte("some value"), nil), nil); err == nil {
				t.Errorf("%s sealed, %s opened: %q", a.name, b.name, plain)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	secret := bytes.Repeat([]byte{7}, 32)
	var all []keys.Key
	for _, m := range makers {
		key, err := m.make(secret)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, key)
		f.Add(key.Seal(nil, []byte("value"), []byte("row")), []byte("row"), []byte("value"))
	}
	f.Fuzz(func(t *testing.T, sealed, bound, plain []byte) {
		for i, key := range all {
			back, err := key.Open(key.Seal(nil, plain, bound), bound)
			if err != nil || !bytes.Equal(back, plain) {
				t.Fatalf("%s: %q, %v", makers[i].name, back, err)
			}
			opened, err := key.Open(sealed, bound)
			if err == nil && !bytes.Equal(opened, []byte("value")) || err != nil && !errors.Is(err, keys.ErrBroken) {
				t.Fatalf("%s: %q, %v", makers[i].name, opened, err)
			}
		}
	})
}

func Benchmark1KB(b *testing.B) {
	plain, bound := bytes.Repeat([]byte("0123456789abcdef"), 64), []byte("rowlock:enc:1:aesgcm:key1:\x07secrets\x07default\x04name")
	for _, m := range makers {
		key, err := m.make(bytes.Repeat([]byte{7}, 32))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(m.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := key.Open(key.Seal(make([]byte, 0, len(plain)+key.Overhead()), plain, bound), bound); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
