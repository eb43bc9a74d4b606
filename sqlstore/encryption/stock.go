package encryption

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/crypto/nacl/secretbox"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption/keys"
	"github.com/rowlock/rowlock/sqlstore/encryption/kms"
)

// Stock decrypts values that a stock server encrypted with an EncryptionConfiguration, for programs that
// transfer them. Their form differs from that of this package: they begin with
// "k8s:enc:PROVIDER:VERSION:NAME:", and are bound to their key of etcd if the provider has authenticated data
// at all.
//
// A decrypted value is the encrypted one, if the provider authenticates it (aescbc does not: its values must
// also look like objects); errors contain nothing of a value or of a secret. It may be used by several
// goroutines, and starts none but those of connections, which Close ends. A key management service is called
// once for each data key.
type Stock struct {
	slots   []stockSlot
	plugins []*kms.V2
}

// stockSlot is one key of one provider.
type stockSlot struct {
	head []byte // how its values begin
	name string
	open func(ctx context.Context, sealed, bound []byte) ([]byte, error)
}

// OpenStock reads a file of a stock server, and names its invalid field. It makes no connections yet.
func OpenStock(path string, log *slog.Logger) (*Stock, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := parse(path, text, false)
	if err != nil {
		return nil, err
	}
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	s, m := &Stock{}, newMetrics("")
	for i := range c.Resources {
		for j := range c.Resources[i].Providers {
			if err := s.add(&c.Resources[i].Providers[j], m, log); err != nil {
				return nil, errors.Join(fmt.Errorf("resources[%d].providers[%d]: %w", i, j, err), s.Close())
			}
		}
	}
	return s, nil
}

func (s *Stock) add(p *provider, m *metrics, log *slog.Logger) error {
	switch {
	case p.AESGCM != nil:
		return s.local("aesgcm", p.AESGCM, openGCM)
	case p.AESCBC != nil:
		return s.local("aescbc", p.AESCBC, openCBC)
	case p.Secretbox != nil:
		return s.local("secretbox", p.Secretbox, openBox)
	case p.KMS == nil:
		return nil
	case p.KMS.APIVersion != "v2":
		return fmt.Errorf("values of KMS version 1 (provider %q) cannot be read: have the old cluster write them anew with version 2 first", p.KMS.Name)
	}
	plugin, err := kms.NewV2(kms.Config{Name: p.KMS.Name, Endpoint: p.KMS.Endpoint, Timeout: p.KMS.Timeout.Duration, Metrics: m.kms, Log: log})
	if err != nil {
		return err
	}
	s.plugins = append(s.plugins, plugin)
	s.slots = append(s.slots, stockSlot{head: []byte("k8s:enc:kms:v2:" + p.KMS.Name + ":"), name: p.KMS.Name, open: plugin.OpenStock})
	return nil
}

func (s *Stock) local(kind string, list *keyList, open func(secret, sealed, bound []byte) ([]byte, error)) error {
	for _, k := range list.Keys {
		secret, err := base64.StdEncoding.DecodeString(k.Secret)
		if err != nil {
			return fmt.Errorf("%s: could not obtain secret for named key %q", kind, k.Name)
		}
		s.slots = append(s.slots, stockSlot{
			head: []byte("k8s:enc:" + kind + ":v1:" + k.Name + ":"), name: k.Name,
			open: func(_ context.Context, sealed, bound []byte) ([]byte, error) { return open(secret, sealed, bound) },
		})
	}
	return nil
}

// Open returns the plain value stored under a key of etcd. A value that is not encrypted is returned as
// it is. Errors: sqlstore.ErrKeyUnavailable where a key management service does not answer.
func (s *Stock) Open(ctx context.Context, key string, stored []byte) ([]byte, error) {
	if !bytes.HasPrefix(stored, []byte("k8s:enc:")) {
		return stored, nil
	}
	var why error
	for i := range s.slots {
		slot := &s.slots[i]
		sealed, ok := bytes.CutPrefix(stored, slot.head)
		if !ok {
			continue
		}
		plain, err := slot.open(ctx, sealed, []byte(key))
		if err == nil {
			return plain, nil
		}
		if why == nil || errors.Is(err, sqlstore.ErrKeyUnavailable) { // two rules may name their keys alike
			why = fmt.Errorf("it cannot be decrypted (key %q): %w", slot.name, err)
		}
	}
	if why == nil {
		why = errors.New("it is encrypted with a key that --encryption-provider-config does not have")
	}
	return nil, why
}

// Close ends all connections.
func (s *Stock) Close() error {
	var errs []error
	for _, p := range s.plugins {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// openGCM: a nonce of 12 bytes, and the encrypted value, bound to the key of etcd.
func openGCM(secret, sealed, bound []byte) ([]byte, error) {
	key, err := keys.Once(secret)
	if err != nil {
		return nil, err
	}
	return key.Open(sealed, bound)
}

// openBox: a nonce of 24 bytes, and the encrypted value, bound to nothing.
func openBox(secret, sealed, _ []byte) ([]byte, error) {
	const nonce = 24
	if len(secret) != 32 || len(sealed) < nonce {
		return nil, keys.ErrBroken
	}
	plain, ok := secretbox.Open(nil, sealed[nonce:], (*[nonce]byte)(sealed), (*[32]byte)(secret))
	if !ok {
		return nil, keys.ErrBroken
	}
	return plain, nil
}

// openCBC: an initialization vector, and blocks with padding, without authentication. So the result must
// begin like an object.
func openCBC(secret, sealed, _ []byte) ([]byte, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, errors.New("the secret is no AES key")
	}
	if len(sealed) < 2*aes.BlockSize || len(sealed)%aes.BlockSize != 0 {
		return nil, keys.ErrBroken
	}
	plain := make([]byte, len(sealed)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, sealed[:aes.BlockSize]).CryptBlocks(plain, sealed[aes.BlockSize:])
	padding := int(plain[len(plain)-1])
	if padding == 0 || padding > aes.BlockSize || padding > len(plain) {
		return nil, keys.ErrBroken
	}
	for _, b := range plain[len(plain)-padding:] {
		if int(b) != padding {
			return nil, keys.ErrBroken
		}
	}
	plain = plain[:len(plain)-padding]
	if !bytes.HasPrefix(plain, []byte("k8s\x00")) && !bytes.HasPrefix(plain, []byte("{")) {
		return nil, keys.ErrBroken
	}
	return plain, nil
}
