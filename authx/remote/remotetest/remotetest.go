// Package remotetest writes kubeconfigs for services that tests start.
package remotetest

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// Kubeconfig writes one for a TLS service at a path, and returns the name of the file.
func Kubeconfig(t testing.TB, srv *httptest.Server, path string) string {
	t.Helper()
	dir := t.TempDir()
	ca, file := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(Text(srv.URL+path, ca)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Text returns a kubeconfig of a service whose authorities are in a file.
func Text(url, ca string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority":%q}}],
"users":[{"name":"u","user":{"token":"of the kubeconfig"}}],
"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`, url, ca)
}
