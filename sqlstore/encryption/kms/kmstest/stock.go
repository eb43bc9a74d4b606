package kmstest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	v2 "k8s.io/kms/apis/v2"
)

// Stock returns a stock server's encrypted value for a key of etcd, after its prefix
// ("k8s:enc:kms:v2:NAME:"), in the published form: a message with the value encrypted by a data key, or by a
// key derived from a seed, and with that key, or seed, encrypted by the plugin.
func (p *Plugin) Stock(t testing.TB, key string, value []byte, seed bool) []byte {
	t.Helper()
	secret, info := bytes.Repeat([]byte{7}, 32), []byte(nil)
	answer, err := p.V2().Encrypt(t.Context(), &v2.EncryptRequest{Plaintext: secret, Uid: "u"})
	if err != nil {
		t.Fatal(err)
	}
	if seed {
		info = bytes.Repeat([]byte{3}, 32)
		if secret, err = hkdf.Expand(sha256.New, secret, string(info), 32); err != nil {
			t.Fatal(err)
		}
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := bytes.Repeat([]byte{5}, gcm.NonceSize())
	out := field(nil, 1, bytes.Join([][]byte{info, nonce, gcm.Seal(nil, nonce, value, []byte(key))}, nil))
	out = field(out, 2, []byte(answer.KeyId))
	out = field(out, 3, answer.Ciphertext)
	for name, v := range answer.Annotations {
		out = field(out, 4, field(field(nil, 1, []byte(name)), 2, v))
	}
	if seed {
		out = protowire.AppendVarint(protowire.AppendTag(out, 5, protowire.VarintType), 1)
	}
	return out
}

func field(b []byte, n protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}
