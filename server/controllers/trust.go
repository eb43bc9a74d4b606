package controllers

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
)

// trustMap is the ConfigMap in kube-system from which schedulers, controller-managers
// and aggregated servers learn whom this cluster's API servers believe.
const trustMap = "extension-apiserver-authentication"

// Its keys. Those of certificates hold PEM, the others JSON arrays of strings.
const (
	clientAuthorities = "client-ca-file"
	proxyAuthorities  = "requestheader-client-ca-file"
	proxyUser         = "requestheader-username-headers"
	proxyUID          = "requestheader-uid-headers"
	proxyGroups       = "requestheader-group-headers"
	proxyExtra        = "requestheader-extra-headers-prefix"
	proxyNames        = "requestheader-allowed-names"
)

// ProxyTrust is what a server asks of authenticating proxies.
type ProxyTrust struct {
	Authorities                           []*x509.Certificate
	User, UID, Groups, ExtraPrefix, Names []string
}

// Trust publishes whom this server believes. Several servers of one cluster write to
// one ConfigMap: what others trust stays in it until their certificates expire.
type Trust struct {
	API     API
	Cache   *cache.Cache
	Log     *slog.Logger
	Clock   func() time.Time
	Clients func() []*x509.Certificate // authorities of client certificates, as they are now
	Proxy   func() ProxyTrust          // nil: no proxies
	Every   time.Duration              // how often it is looked at without a change; 0: a minute
}

// Run works until ctx ends.
func (t *Trust) Run(ctx context.Context) error {
	every := t.Every
	if every == 0 {
		every = time.Minute
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		w, _ := t.Cache.WatchNow("configmaps", cache.Scope{Namespace: metav1.NamespaceSystem, Name: trustMap})
		t.follow(ctx, w, tick.C)
		w.Stop()
	}
	return nil
}

// follow publishes at each change and at each tick, until the watcher is cut off.
func (t *Trust) follow(ctx context.Context, w *cache.Watcher, tick <-chan time.Time) {
	var batch []cache.Delivery
	for {
		if err := t.publish(ctx); err != nil && ctx.Err() == nil {
			t.Log.Warn("cannot publish whom this cluster trusts", "configmap", metav1.NamespaceSystem+"/"+trustMap, "error", err)
		}
		select {
		case <-w.Ready():
			var err error
			if batch, _, err = w.Take(ctx, batch); err != nil {
				return
			}
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// publish writes the ConfigMap if it does not say what it should.
func (t *Trust) publish(ctx context.Context) error {
	const path = "/api/v1/namespaces/" + metav1.NamespaceSystem + "/configmaps"
	have := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: trustMap, Namespace: metav1.NamespaceSystem}}
	verb, at := http.MethodPost, path
	if item := t.Cache.Get("configmaps", metav1.NamespaceSystem, trustMap); item != nil && item.Corrupt == nil {
		if err := json.Unmarshal(item.JSON, have); err != nil {
			return err
		}
		verb, at = http.MethodPut, path+"/"+trustMap
	}
	data, err := t.data(have.Data)
	if err != nil {
		return err
	}
	if verb == http.MethodPut && maps.Equal(data, have.Data) || len(data) == 0 {
		return nil
	}
	have.Data = data
	err = t.API.Call(ctx, "kube-apiserver", verb, at, "application/json", have, nil)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return nil // the change that was faster brings us back, or the next tick does
	}
	return err
}

// data is what the ConfigMap should hold where it holds old now.
func (t *Trust) data(old map[string]string) (map[string]string, error) {
	data := maps.Clone(old)
	if data == nil {
		data = map[string]string{}
	}
	now := t.Clock()
	if clients := t.Clients(); len(clients) > 0 {
		data[clientAuthorities] = joined(old[clientAuthorities], clients, now)
	}
	if t.Proxy == nil {
		return data, nil
	}
	p := t.Proxy()
	data[proxyAuthorities] = joined(old[proxyAuthorities], p.Authorities, now)
	for key, list := range map[string][]string{proxyUser: p.User, proxyUID: p.UID, proxyGroups: p.Groups, proxyExtra: p.ExtraPrefix, proxyNames: p.Names} {
		if key == proxyUID && len(list) == 0 && old[key] == "" {
			continue // older readers do not know this key
		}
		text, err := union(old[key], list, key == proxyNames)
		if err != nil {
			return nil, err
		}
		data[key] = text
	}
	return data, nil
}

// joined is the PEM text of what stands there already and has not expired, and of
// certs that do not. A text that cannot be read is replaced.
func joined(old string, certs []*x509.Certificate, now time.Time) string {
	var out bytes.Buffer
	seen := map[string]bool{}
	add := func(der []byte, c *x509.Certificate) {
		if seen[string(der)] || now.After(c.NotAfter) {
			return
		}
		seen[string(der)] = true
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}) // a buffer takes everything
	}
	for rest := []byte(old); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			add(c.Raw, c)
		}
	}
	for _, c := range certs {
		add(c.Raw, c)
	}
	return out.String()
}

// union is the JSON array of what stands there already and of list. Of names, an empty
// list means any name, so that it wins over whatever others say.
func union(old string, list []string, emptyWins bool) (string, error) {
	var all []string
	known := json.Unmarshal([]byte(old), &all) == nil
	if emptyWins && (len(list) == 0 || known && len(all) == 0) {
		return "[]", nil
	}
	for _, s := range list {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	if all == nil {
		all = []string{}
	}
	text, err := json.Marshal(all)
	return string(text), err
}
