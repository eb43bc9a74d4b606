package clusterinfo_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/controllers/clusterinfo"
	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/servertest"
)

// lines is a log.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), text)
}

// TestClusterInfo: the ConfigMap is made, follows the authority, and keeps a kubeconfig that another client writes;
// signatures cover its content.
func TestClusterInfo(t *testing.T) {
	s := servertest.Start(t, func(c *server.Config) { c.Controllers.Runs = func(string) bool { return false } })
	var log lines
	var authority atomic.Value
	var reads atomic.Int64
	authority.Store("one")
	info := &clusterinfo.Publisher{
		Base: reconcile.Base{API: s.Server, Cache: s.Cache, Log: slog.New(slog.NewTextHandler(&log, nil)), Retry: time.Millisecond}, Server: "https://api:6443",
		Authority: reconcile.Authority{Every: 2 * time.Millisecond, Read: func() ([]byte, error) {
			reads.Add(1)
			return []byte(authority.Load().(string)), nil
		}},
	}
	signer := &clusterinfo.Signer{Base: reconcile.Base{API: s.Server, Cache: s.Cache, Log: controllertest.DiscardLog}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{info.Run, signer.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})

	const maps = "/api/v1/namespaces/kube-public/configmaps"
	get := func() (m corev1.ConfigMap, found bool) {
		w := s.Do("GET", maps+"/cluster-info", "")
		if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		return m, w.Code == http.StatusOK
	}
	own := func(authority string) string {
		return fmt.Sprintf("certificate-authority-data: %s\n    server: https://api:6443\n", base64.StdEncoding.EncodeToString([]byte(authority)))
	}
	const secret = "0123456789abcdef"
	awaitText := func(text string) { // and is signed so
		t.Helper()
		servertest.Eventually(t, func() bool {
			m, _ := get()
			head, signature, _ := strings.Cut(m.Data["jws-kubeconfig-abcdef"], "..")
			mac := hmac.New(sha256.New, []byte("abcdef."+secret))
			mac.Write([]byte(head + "." + base64.RawURLEncoding.EncodeToString([]byte(m.Data["kubeconfig"]))))
			return strings.Contains(m.Data["kubeconfig"], text) && signature == base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
		})
	}
	stays := func(text string) { // though it was looked at again
		t.Helper()
		before := reads.Load()
		servertest.Eventually(t, func() bool { return reads.Load() > before+2 })
		awaitText(text)
	}
	merge := []string{"Content-Type", "application/merge-patch+json"}

	servertest.Eventually(t, func() bool { _, found := get(); return found })
	s.Must("POST", "/api/v1/namespaces/kube-system/secrets", `{"metadata":{"name":"bootstrap-token-abcdef"},"type":"bootstrap.kubernetes.io/token",
		"stringData":{"token-id":"abcdef","token-secret":"`+secret+`","usage-bootstrap-signing":"true"}}`)
	awaitText(own("one"))
	authority.Store("two")
	awaitText(own("two"))
	if n := log.count("has the address and the authority of this server now"); n != 1 {
		t.Errorf("%d lines about one correction", n)
	}

	s.Must("PATCH", maps+"/cluster-info?fieldManager=kubectl-edit", `{"data":{"kubeconfig":"server: https://balancer:443"}}`, merge...)
	stays("https://balancer:443")
	authority.Store("three")
	stays("https://balancer:443")
	if n := log.count("managers=kubectl-edit"); n != 1 {
		t.Errorf("%d lines about who has edited it", n)
	}
	s.Must("PATCH", maps+"/cluster-info?fieldManager=kubectl-edit", `{"data":{"kubeconfig":"server: https://other:443"}}`, merge...)
	stays("https://other:443")

	s.Must("DELETE", maps+"/cluster-info", "")
	awaitText(own("three"))
	m, _ := get()
	applied, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "cluster-info"}, "data": map[string]any{"kubeconfig": m.Data["kubeconfig"]}})
	if err != nil {
		t.Fatal(err)
	}
	s.Must("PATCH", maps+"/cluster-info?fieldManager=gitops", string(applied), "Content-Type", "application/apply-patch+yaml")
	authority.Store("four")
	stays(own("three"))
	if n := log.count(`managers="cluster-info, gitops"`); n != 1 {
		t.Errorf("%d lines about who owns it too", n)
	}

	s.Must("DELETE", maps+"/cluster-info", "")
	awaitText(own("four"))
	s.Must("PATCH", maps+"/cluster-info", `{"metadata":{"labels":null}}`, merge...)
	authority.Store("five")
	stays(own("four"))
}
