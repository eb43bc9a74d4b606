// Package keys encrypts bytes with secrets from a configuration.
//
// A ciphertext decrypts only with the same secret and the same binding, whole and unchanged. Encrypting a text
// twice gives different bytes. No error reveals anything of a text or a secret. A Key may be used by many
// goroutines.
package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"sync"

	"golang.org/x/crypto/nacl/secretbox"
)

// Key is a secret with a manner of using it.
type Key interface {
	// Overhead is by how much Seal makes a value longer, at most.
	Overhead() int
	// Seal appends the encrypted form of plain to dst, which must not overlap plain. bound is not stored; it
	// identifies the place of the value, and Open requires the same.
	Seal(dst, plain, bound []byte) []byte
	// Open returns the decrypted value in a new slice. Errors: ErrBroken.
	Open(sealed, bound []byte) ([]byte, error)
}

// Bound appends to dst, which begins the stored form, the data that a value belongs to: a binding
// for Seal and Open. No two lists of parts have the same.
func Bound(dst []byte, parts ...string) []byte {
	for _, p := range parts {
		dst = binary.AppendUvarint(dst, uint64(len(p)))
		dst = append(dst, p...)
	}
	return dst
}

// ErrBroken: bytes were not made by Seal with this secret and this binding.
var ErrBroken = errors.New("the stored bytes were not sealed with this key for this object")

const (
	infoSize  = 32
	nonceSize = 12
	tagSize   = 16
	seedSize  = 32
)

// gcm seals each value with AES-GCM and a key of its own, which HKDF makes of the seed and
// of random bytes that are stored with the value. So no key meets a nonce twice, however
// many values there are: random nonces alone would, after some billion, with one key.
type gcm struct {
	seed *maker
	size int // of the keys that are made
}

// FromSeed returns the Key of a random seed of 32 bytes.
func FromSeed(seed []byte) (Key, error) {
	if len(seed) != seedSize {
		return nil, fmt.Errorf("a seed of %d bytes, want %d", len(seed), seedSize)
	}
	return &gcm{seed: newMaker(seed), size: seedSize}, nil
}

// NewSeed returns a random seed.
func NewSeed() []byte {
	seed := make([]byte, seedSize)
	fill(seed)
	return seed
}

// AESGCM returns the Key of a secret of 16, 24 or 32 bytes.
func AESGCM(secret []byte) (Key, error) {
	if err := sized(secret); err != nil {
		return nil, err
	}
	seed, err := hkdf.Extract(sha256.New, secret, []byte("rowlock aesgcm"))
	if err != nil {
		return nil, err
	}
	return &gcm{seed: newMaker(seed), size: len(secret)}, nil
}

func sized(secret []byte) error {
	switch len(secret) {
	case 16, 24, 32:
		return nil
	}
	return fmt.Errorf("a secret of %d bytes, want 16, 24 or 32", len(secret))
}

func (k *gcm) Overhead() int { return infoSize + nonceSize + tagSize }

func (k *gcm) Seal(dst, plain, bound []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, infoSize+nonceSize)...)
	random := dst[at:]
	fill(random)
	return k.aead(random[:infoSize]).Seal(dst, random[infoSize:], plain, bound)
}

func (k *gcm) Open(sealed, bound []byte) ([]byte, error) {
	if len(sealed) < k.Overhead() {
		return nil, ErrBroken
	}
	plain, err := k.aead(sealed[:infoSize]).Open(nil, sealed[infoSize:][:nonceSize], sealed[infoSize+nonceSize:], bound)
	if err != nil {
		return nil, ErrBroken
	}
	return plain, nil
}

func (k *gcm) aead(info []byte) cipher.AEAD {
	key := k.seed.expand(info)
	return newGCM(key[:k.size])
}

func newGCM(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the length is that of an AES key
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // the block is that of AES
	}
	return aead
}

// once is AES-GCM with one key and random nonces.
type once struct{ aead cipher.AEAD }

// Once returns the Key of a secret that seals one value alone.
func Once(secret []byte) (Key, error) {
	if err := sized(secret); err != nil {
		return nil, err
	}
	return once{newGCM(secret)}, nil
}

func (k once) Overhead() int { return nonceSize + tagSize }

func (k once) Seal(dst, plain, bound []byte) []byte {
	var nonce [nonceSize]byte
	fill(nonce[:])
	return k.aead.Seal(append(dst, nonce[:]...), nonce[:], plain, bound)
}

func (k once) Open(sealed, bound []byte) ([]byte, error) {
	if len(sealed) < k.Overhead() {
		return nil, ErrBroken
	}
	plain, err := k.aead.Open(nil, sealed[:nonceSize], sealed[nonceSize:], bound)
	if err != nil {
		return nil, ErrBroken
	}
	return plain, nil
}

// cbc is AES-CBC with PKCS #7 padding, followed by an HMAC of the binding and of all stored bytes, with a key
// of its own. The HMAC is verified first, so the padding of a forged value is never read.
type cbc struct {
	block cipher.Block
	mac   *maker
}

// AESCBC returns the Key of a secret of 16, 24 or 32 bytes.
func AESCBC(secret []byte) (Key, error) {
	if err := sized(secret); err != nil {
		return nil, err
	}
	seed, err := hkdf.Extract(sha256.New, secret, []byte("rowlock aescbc"))
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Expand(sha256.New, seed, "encrypt", len(secret))
	if err != nil {
		return nil, err
	}
	mac, err := hkdf.Expand(sha256.New, seed, "authenticate", sha256.Size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return &cbc{block: block, mac: newMaker(mac)}, nil
}

func (k *cbc) Overhead() int { return 2*aes.BlockSize + sha256.Size }

func (k *cbc) Seal(dst, plain, bound []byte) []byte {
	at := len(dst)
	padding := aes.BlockSize - len(plain)%aes.BlockSize
	dst = append(dst, make([]byte, aes.BlockSize)...)
	fill(dst[at:])
	dst = append(dst, plain...)
	for range padding {
		dst = append(dst, byte(padding))
	}
	body := dst[at+aes.BlockSize:]
	cipher.NewCBCEncrypter(k.block, dst[at:at+aes.BlockSize]).CryptBlocks(body, body)
	return k.tag(dst, dst[at:], bound)
}

// tag appends the HMAC of a binding and the encrypted bytes.
func (k *cbc) tag(dst, sealed, bound []byte) []byte {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(bound)))
	sum := k.mac.sum(size[:], bound, sealed)
	return append(dst, sum[:]...)
}

func (k *cbc) Open(sealed, bound []byte) ([]byte, error) {
	end := len(sealed) - sha256.Size
	if end < 2*aes.BlockSize || end%aes.BlockSize != 0 {
		return nil, ErrBroken
	}
	if !hmac.Equal(k.tag(nil, sealed[:end], bound), sealed[end:]) {
		return nil, ErrBroken
	}
	plain := make([]byte, end-aes.BlockSize)
	cipher.NewCBCDecrypter(k.block, sealed[:aes.BlockSize]).CryptBlocks(plain, sealed[aes.BlockSize:end])
	padding := int(plain[len(plain)-1])
	if padding == 0 || padding > aes.BlockSize {
		return nil, ErrBroken
	}
	return plain[:len(plain)-padding], nil
}

// box is XSalsa20 and Poly1305. It knows no additional data, so that each binding has a
// key of its own, which HKDF makes of the secret.
type box struct{ secret *maker }

const boxNonce = 24

// Secretbox returns the Key of a secret of 32 bytes.
func Secretbox(secret []byte) (Key, error) {
	if len(secret) != 32 {
		return nil, fmt.Errorf("a secret of %d bytes, want 32", len(secret))
	}
	return &box{secret: newMaker(secret)}, nil
}

func (k *box) Overhead() int { return boxNonce + secretbox.Overhead }

func (k *box) Seal(dst, plain, bound []byte) []byte {
	var nonce [boxNonce]byte
	fill(nonce[:])
	key := k.secret.expand(bound)
	return secretbox.Seal(append(dst, nonce[:]...), plain, &nonce, &key)
}

func (k *box) Open(sealed, bound []byte) ([]byte, error) {
	if len(sealed) < k.Overhead() {
		return nil, ErrBroken
	}
	key := k.secret.expand(bound)
	plain, ok := secretbox.Open(nil, sealed[boxNonce:], (*[boxNonce]byte)(sealed), &key)
	if !ok {
		return nil, ErrBroken
	}
	return plain, nil
}

// maker is HMAC with SHA-256 and one key, whose first steps are made once.
type maker struct{ pool sync.Pool }

func newMaker(key []byte) *maker {
	return &maker{sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

func (m *maker) sum(parts ...[]byte) (sum [sha256.Size]byte) {
	h := m.pool.Get().(hash.Hash)
	h.Reset()
	for _, p := range parts {
		h.Write(p)
	}
	h.Sum(sum[:0])
	m.pool.Put(h)
	return sum
}

// expand is HKDF-Expand (RFC 5869) for 32 bytes, which are its first block.
func (m *maker) expand(info []byte) [sha256.Size]byte { return m.sum(info, []byte{1}) }

// fill makes bytes random. The standard library ends the process where there is no
// randomness available.
func fill(b []byte) { _, _ = rand.Read(b) }
