package encryption_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/nacl/secretbox"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption"
	"github.com/rowlock/rowlock/sqlstore/encryption/kms/kmstest"
)

const stockKey = "/registry/secrets/a/x"

var (
	stockSecret = bytes.Repeat([]byte{7}, 32)
	stockPlain  = []byte("k8s\x00 some object of a stock server, longer than a block")
)

// The following functions make values as a stock server does, from its published formats.

func stockGCM(secret []byte, key string) []byte {
	block, _ := aes.NewCipher(secret)
	aead, _ := cipher.NewGCM(block)
	nonce := bytes.Repeat([]byte{5}, aead.NonceSize())
	return aead.Seal(bytes.Clone(nonce), nonce, stockPlain, []byte(key))
}

func stockCBC(plain []byte) []byte {
	block, _ := aes.NewCipher(stockSecret)
	padding := aes.BlockSize - len(plain)%aes.BlockSize
	body := append(bytes.Clone(plain), bytes.Repeat([]byte{byte(padding)}, padding)...)
	iv := bytes.Repeat([]byte{9}, aes.BlockSize)
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(body, body)
	return append(iv, body...)
}

func stockBox() []byte {
	nonce := [24]byte{1, 2, 3}
	return secretbox.Seal(nonce[:], stockPlain, &nonce, (*[32]byte)(stockSecret))
}

func openStock(t *testing.T, text string) (*encryption.Stock, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := encryption.OpenStock(path, nil)
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return s, err
}

func stockConfig(endpoint string) string {
	secret := base64.StdEncoding.EncodeToString(stockSecret)
	other := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{8}, 32))
	return fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [configmaps]
  providers: [{aescbc: {keys: [{name: k, secret: %[2]s}]}}, {aesgcm: {keys: [{name: k, secret: %[2]s}]}}]
- resources: [secrets]
  providers:
  - aescbc: {keys: [{name: k, secret: %[1]s}]}
  - aesgcm: {keys: [{name: k, secret: %[1]s}]}
  - secretbox: {keys: [{name: k, secret: %[1]s}]}
  - kms: {apiVersion: v2, name: plug, endpoint: "%[3]s", timeout: 500ms}
  - identity: {}
`, secret, other, endpoint)
}

// TestStock: values of each provider of a stock server open with their key in etcd,
// also if an earlier rule has another secret of the same name; no others do.
func TestStock(t *testing.T) {
	plugin := kmstest.New("key-1")
	s, err := openStock(t, stockConfig(plugin.Serve(t)))
	if err != nil {
		t.Fatal(err)
	}
	head := func(head string, sealed []byte) []byte { return append([]byte("k8s:enc:"+head), sealed...) }
	values := map[string][]byte{
		"aescbc": head("aescbc:v1:k:", stockCBC(stockPlain)), "aesgcm": head("aesgcm:v1:k:", stockGCM(stockSecret, stockKey)), "secretbox": head("secretbox:v1:k:", stockBox()),
		"kms":      head("kms:v2:plug:", plugin.Stock(t, stockKey, stockPlain, false)),
		"kms seed": head("kms:v2:plug:", plugin.Stock(t, stockKey, stockPlain, true)),
		"none":     stockPlain,
	}
	for name, value := range values {
		for range 2 {
			if plain, err := s.Open(t.Context(), stockKey, value); err != nil || !bytes.Equal(plain, stockPlain) {
				t.Errorf("%s: %q, %v", name, plain, err)
			}
		}
		if name == "none" {
			continue
		}
		if name != "aescbc" && name != "secretbox" { // which belong to no key
			if plain, err := s.Open(t.Context(), stockKey+"y", value); err == nil {
				t.Errorf("%s of another key: %q", name, plain)
			}
		}
		for _, n := range []int{len("k8s:enc:") + len(name), len(value) / 2, len(value) - 1} {
			if plain, err := s.Open(t.Context(), stockKey, value[:n]); err == nil {
				t.Errorf("%s cut at %d: %q", name, n, plain)
			}
		}
	}
	unlike := head("aescbc:v1:k:", stockCBC([]byte("no object at all")))
	for want, value := range map[string][]byte{"does not have": head("aescbc:v1:other:", nil), "(key \"k\")": unlike, "key \"plug\"": head("kms:v2:plug:", []byte{0xff})} {
		if _, err := s.Open(t.Context(), stockKey, value); err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, sqlstore.ErrKeyUnavailable) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestStockSilent: a plugin that does not answer causes another error than a wrong key.
func TestStockSilent(t *testing.T) {
	plugin := kmstest.New("key-1")
	s, err := openStock(t, stockConfig(plugin.Serve(t)))
	if err != nil {
		t.Fatal(err)
	}
	value := append([]byte("k8s:enc:kms:v2:plug:"), plugin.Stock(t, stockKey, stockPlain, true)...)
	plugin.Stop()
	if _, err := s.Open(context.Background(), stockKey, value); !errors.Is(err, sqlstore.ErrKeyUnavailable) {
		t.Errorf("%v", err)
	}
}

// TestStockRefused: a file that cannot be used is refused by the field, without its secrets.
func TestStockRefused(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n"
	for want, text := range map[string]string{
		"is empty":               "",
		"resources[0].providers": head + "  - aescbc: {keys: []}\n",
		"KMS version 1":          head + "  - kms: {apiVersion: v1, name: p, endpoint: 'unix:///x'}\n",
	} {
		if _, err := openStock(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
