package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/server/datadir"
)

// TestAuthorityGetsASuccessor: a server with an old authority makes the successor while it runs, serves with
// it without a restart, and clients that trust only the old one continue to work.
func TestAuthorityGetsASuccessor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	old, err := datadir.Open(path, datadir.Options{ServerURL: "https://127.0.0.1:1", Now: time.Now().AddDate(-7, 0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(old.CACert)
	if err != nil {
		t.Fatal(err)
	}
	s := harness.StartT(t, harness.Options{DataDir: path})
	kubeconfig, err := os.ReadFile(s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	eventually(t, "the successor's certificate", func() bool {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL, "https://"), &tls.Config{RootCAs: roots})
		if err != nil {
			t.Fatalf("a client of the old authority: %v", err)
		}
		defer conn.Close()
		return strings.HasPrefix(conn.ConnectionState().PeerCertificates[0].Issuer.CommonName, "rowlock-ca-")
	})
	now, err := os.ReadFile(old.CACert)
	if err != nil || !bytes.HasSuffix(now, authority) || bytes.Equal(now, authority) {
		t.Errorf("ca.crt does not hold the old authority behind the new one: %v", err)
	}
	// kubectl with the kubeconfig that was there at the start, and with the one that is now.
	k := s.Kubectl(t)
	k.Run("get", "namespaces")
	before := filepath.Join(t.TempDir(), "before")
	if err := os.WriteFile(before, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	k.With("KUBECONFIG="+before).Run("get", "namespaces")
	if !strings.Contains(k.Run("get", "--raw", "/metrics"), `rowlock_certificate_end_timestamp_seconds{file="ca.crt"}`) {
		t.Error("no metric has the expiry of the authority")
	}
}
