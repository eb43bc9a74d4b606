package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
)

// Sealer turns values into what is stored and back. It is asked with the key of the row;
// what is sealed for one key does not open for another. Its methods may be called by many
// goroutines at once. They may have to ask a key management service, and then take as long
// as that may take: who holds what others wait for does not call them.
type Sealer interface {
	// Seal makes the bytes to store. They may be plain itself, where nothing is encrypted.
	// Errors: SealError, and those of ctx.
	Seal(ctx context.Context, key Key, plain []byte) ([]byte, error)
	// Open gives the value back; it may be a part of stored, which stays as it is.
	// stale: it would be sealed differently now (by another provider or key), so that a
	// write of the same value is no empty one.
	// Errors: UnsealError, and those of ctx.
	Open(ctx context.Context, key Key, stored []byte) (plain []byte, stale bool, err error)
	// Covers says whether a value of a resource that was opened here may be stale: whether
	// the resource is, or ever was, among those that this Sealer encrypts or decrypts.
	Covers(resource string) bool
}

// SealedPrefix begins every value that a Sealer encrypted. Other values are JSON and begin
// with a brace, so that SQL tells them apart. Behind it stand the provider and the name of
// its key, each ended by a colon (SealedBy), and then bytes that are nobody's business here.
const SealedPrefix = "rowlock:enc:1:"

// maxSealedName bounds what SealedBy takes for a name: a value may have any bytes.
const maxSealedName = 4096

// SealHead begins a value that a provider seals with a key of a name. What is no plain
// text in the name, and a colon, is written as in URLs.
func SealHead(provider, keyName string) string {
	return SealedPrefix + provider + ":" + escapeName(keyName) + ":"
}

// SealedBy says which provider sealed a value, with the key of which name (as SealHead
// wrote it), and where the head ends. ok is false for a value that is not encrypted.
// A value that begins as one and has no head is encrypted, by nobody.
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

// UnsealError: a stored value cannot be opened. It tells nothing of the value.
type UnsealError struct {
	Key      Key
	Provider string // that sealed it; "" if that is unknown
	KeyName  string
	Err      error
}

// SealError: a value cannot be sealed. It tells nothing of the value.
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

// ErrSealed: a value is encrypted, and who should open it has no key at all.
var ErrSealed = errors.New("the value is encrypted, and no provider is configured that opens it")

// ErrKeyUnavailable: who has the key does not answer now. The same may succeed later, and
// nothing is known to be wrong with the value.
var ErrKeyUnavailable = errors.New("the key is not to be had at present")

// Unsealed is the Sealer of who has no keys: values are stored as they are, and what was
// encrypted by others is refused.
type Unsealed struct{}

// Seal implements Sealer.
func (Unsealed) Seal(_ context.Context, _ Key, plain []byte) ([]byte, error) { return plain, nil }

// Covers implements Sealer.
func (Unsealed) Covers(string) bool { return false }

// Open implements Sealer.
func (Unsealed) Open(_ context.Context, key Key, stored []byte) ([]byte, bool, error) {
	if provider, name, _, sealed := SealedBy(stored); sealed {
		return nil, false, &UnsealError{Key: key, Provider: provider, KeyName: name, Err: ErrSealed}
	}
	return stored, false, nil
}
