//go:build unix

package traffic

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/audit"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption"
)

// TestKeyring: a server encrypts with the first key of the file of a keyring, and Pod templates only if they are to be.
func TestKeyring(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), encryptionFile)
	ring := keyring{firstKey}
	for _, provider := range providers {
		next := key{provider, "of-" + provider, base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))}
		ring = append(keyring{next}, ring...)
		for _, templates := range []bool{false, true} {
			if err := ring.write(path, templates, 3); err != nil {
				t.Fatal(err)
			}
			set, err := encryption.Open(t.Context(), encryption.Config{Path: path, Reload: true})
			if err != nil {
				t.Fatal(err)
			}
			for resource, sealed := range map[string]bool{"secrets": true, "podtemplates": templates} {
				stored, err := set.Seal(t.Context(), sqlstore.Key{Resource: resource, Namespace: "a", Name: "b"}, []byte("{}"))
				if err != nil || strings.HasPrefix(string(stored), next.head()) != sealed || string(stored) == "{}" == sealed {
					t.Errorf("%s of %s, %v: %.80q, %v", provider, resource, templates, stored, err)
				}
			}
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestKeyringOnDisk: a keyring is read as it was saved, and a folder without one has the first key.
func TestKeyringOnDisk(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ring, err := readRing(folder)
	if err != nil || len(ring) != 1 || ring[0] != firstKey {
		t.Fatalf("the first keyring: %v, %v", ring, err)
	}
	ring = ring.with(key{"secretbox", "second", "x"}, firstKey)
	if err := ring.save(folder); err != nil {
		t.Fatal(err)
	}
	if again, err := readRing(folder); err != nil || len(again) != 2 || again[1] != ring[1] {
		t.Errorf("%v, %v; want %v", again, err, ring)
	}
}

// TestAuditPolicy: the policy of the servers is one.
func TestAuditPolicy(t *testing.T) {
	t.Parallel()
	if p, err := audit.Parse([]byte(auditPolicy)); err != nil || len(p.Remarks) > 0 {
		t.Errorf("%v: %v", p, err)
	}
}
