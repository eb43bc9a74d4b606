package remote

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FuzzAnswer: an answer of a service is decoded as the expected kind, or not at all.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":"x"}}}`))
	f.Add([]byte(`{"kind":"Status","status":"Failure","message":"no"}`))
	f.Add([]byte(`{"status":{"authenticated":true}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		want := schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenReview"}
		var review authenticationv1.TokenReview
		if err := decode(answer, want, &review); err != nil {
			return
		}
		if k := review.GroupVersionKind(); k.Kind != "" && k.Kind != want.Kind || review.APIVersion != "" && k.GroupVersion() != want.GroupVersion() {
			t.Fatalf("%q was read as %v", answer, want)
		}
	})
}

// FuzzKubeconfig: whatever the file contains, a service without an address is refused.
func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte("clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1/x'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\ncurrent-context: c\n"))
	f.Add([]byte("{}"))
	f.Add([]byte("clusters: [{name: c, cluster: {server: 'h', certificate-authority-data: eA==}}]\ncurrent-context: c"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := New(file, time.Second, nil)
		if err == nil && (s.URL() == nil || s.URL().Path == "") {
			t.Fatalf("%q: %v", text, s.URL())
		}
	})
}
