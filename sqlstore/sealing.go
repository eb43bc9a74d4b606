package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
)

// Sealer encrypts and decrypts values. A value is bound to the key of its row. Its methods may be called by
// many goroutines concurrently. They may call a key management service and take as long as that: do not call
// them while holding a lock.
type Sealer interface {
	// Seal returns the bytes to store, which are plain itself if nothing is encrypted. Errors: SealError, and
	// those of ctx.
	Seal(ctx context.Context, key Key, plain []byte) ([]byte, error)
	// Open returns the value, which may be a part of stored and does not change it. stale: it would be
	// encrypted differently now (by another provider or key), so that writing the same value changes the row.
	// Errors: UnsealError, and those of ctx.
	Open(ctx context.Context, key Key, stored []byte) (plain []byte, stale bool, err error)
	// Covers reports whether a value of a resource may be stale when it is opened: whether this Sealer
	// encrypts or decrypts the resource, or ever did.
	Covers(resource string) bool
}

// SealedPrefix begins every encrypted value. Other values are JSON and begin with a brace, so that SQL can
// distinguish them. The provider and the name of its key follow, each ended by a colon (SealedBy), and then
// bytes whose form only the provider knows.
const SealedPrefix = "rowlock:enc:1:"

// maxSealedName bounds the name in SealedBy: a value may have any bytes.
const maxSealedName = 4096

// SealHead begins a value that a provider encrypts with a key. Special characters of the name, and colons, are
// escaped as in URLs.
func SealHead(provider, keyName string) string {
	return SealedPrefix + provider + ":" + escapeName(keyName) + ":"
}

// SealedBy returns the provider that encrypted a value, the name of its key (as SealHead wrote it), and the
// length of the head. ok is false for a value that is not encrypted. A value with the prefix but without a
// head has no provider.
func SealedBy(stored []byte) (provider, keyName string, head int, ok bool) {
	rest, ok := bytes.CutPrefix(stored, []byte(SealedPrefix))
	if !ok {
		return "", "", 0, false
	}
	rest = rest[:min(len(rest), maxSealedName)]
	p, rest, found := bytes.Cut(rest, []byte{':'})
	k, _, ended := bytes.Cut(rest, []byte{':'})
	if !found || !ended {
		return "", "", 0, true
	}
	return string(p), string(k), len(SealedPrefix) + len(p) + len(k) + 2, true
}

func escapeName(name string) string {
	var out strings.Builder
	for i := range len(name) {
		if c := name[i]; c > ' ' && c < 0x7f && c != ':' && c != '%' {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// UnsealError: a stored value cannot be decrypted. It reveals nothing of the value.
type UnsealError struct {
	Key      Key
	Provider string // that encrypted it; "" if unknown
	KeyName  string
	Err      error
}

// SealError: a value cannot be encrypted. It reveals nothing of the value.
type SealError struct {
	Key      Key
	Provider string
	KeyName  string
	Err      error
}

func (e *UnsealError) Error() string {
	return fmt.Sprintf("%s: cannot be decrypted%s: %s", e.Key, sealedWith(e.Provider, e.KeyName), e.Err)
}

func (e *SealError) Error() string {
	return fmt.Sprintf("%s: cannot be encrypted%s: %s", e.Key, sealedWith(e.Provider, e.KeyName), e.Err)
}

func (e *UnsealError) Unwrap() error { return e.Err }
func (e *SealError) Unwrap() error   { return e.Err }

func sealedWith(provider, keyName string) string {
	if provider == "" {
		return ""
	}
	return fmt.Sprintf(" (%s, key %q)", provider, keyName)
}

// ErrSealed: a value is encrypted, and there is no key.
var ErrSealed = errors.New("the value is encrypted, and no provider is configured that opens it")

// ErrKeyUnavailable: the key server does not answer now. The same call may succeed later, and the value need not
// be damaged.
var ErrKeyUnavailable = errors.New("the key is not to be had at present")

// NoEncryption is the Sealer without keys: it stores values in plain text, and refuses encrypted ones.
type NoEncryption struct{}

// Seal implements Sealer.
func (NoEncryption) Seal(_ context.Context, _ Key, plain []byte) ([]byte, error) { return plain, nil }

// Covers implements Sealer.
func (NoEncryption) Covers(string) bool { return false }

// Open implements Sealer.
func (NoEncryption) Open(_ context.Context, key Key, stored []byte) ([]byte, bool, error) {
	if provider, name, _, sealed := SealedBy(stored); sealed {
		return nil, false, &UnsealError{Key: key, Provider: provider, KeyName: name, Err: ErrSealed}
	}
	return stored, false, nil
}
