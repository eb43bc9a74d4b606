package clusterinfo

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// The ConfigMaps of kube-system that publish this cluster's authentication settings.
const (
	authenticationMap   = "extension-apiserver-authentication"
	trackingMap         = "kube-apiserver-legacy-service-account-token-tracking"
	systemMaps          = "/api/v1/namespaces/" + metav1.NamespaceSystem + "/configmaps"
	authenticationAgent = "kube-apiserver"

	authenticationEvery = time.Minute // how often they are checked
)

// Authentication publishes how requests are authenticated, for extension servers that are reached through this one, and
// since when uses of legacy tokens are tracked. Each of several servers adds its own data; expired authorities are
// removed.
type Authentication struct {
	reconcile.Base
	// Data are the keys and values of this server: those that end in "-file" are certificates as PEM, others lists as JSON.
	Data func() (map[string]string, error)
}

// Run works until ctx ends.
func (c *Authentication) Run(ctx context.Context) error {
	changes := map[string]func(map[string]string) error{authenticationMap: c.publish, trackingMap: c.since}
	l := &reconcile.Loop{
		Base: c.Base, Keys: []reconcile.Key{{Name: authenticationMap}, {Name: trackingMap}}, Resync: authenticationEvery,
		Failure: "cannot publish how this cluster authenticates",
	}
	l.Reconcile = func(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
		return r, c.ensure(ctx, key.Name, changes[key.Name])
	}
	return l.Run(ctx)
}

// ensure makes a ConfigMap, or changes it where change makes a difference.
func (c *Authentication) ensure(ctx context.Context, name string, change func(data map[string]string) error) error {
	var m corev1.ConfigMap
	err := c.API.Call(ctx, authenticationAgent, http.MethodGet, systemMaps+"/"+name, "", nil, &m)
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return err
	}
	data := maps.Clone(m.Data)
	if data == nil {
		data = map[string]string{}
	}
	if err := change(data); err != nil || !absent && maps.Equal(data, m.Data) {
		return err
	}
	m.Data = data
	method, path := http.MethodPut, systemMaps+"/"+name
	if absent {
		m = corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem}, Data: data}
		method, path = http.MethodPost, systemMaps
	}
	return c.API.Call(ctx, authenticationAgent, method, path, reconcile.JSON, &m, nil)
}

// since notes the day of the first start.
func (c *Authentication) since(data map[string]string) error {
	if _, err := time.Parse(time.DateOnly, data["since"]); err != nil {
		data["since"] = c.Now().UTC().Format(time.DateOnly)
	}
	return nil
}

// publish adds this server's own values.
func (c *Authentication) publish(data map[string]string) error {
	own, err := c.Data()
	if err != nil {
		return err
	}
	for key, value := range own {
		if strings.HasSuffix(key, "-file") {
			data[key] = mergeCertificates(data[key]+"\n"+value, c.Now())
		} else {
			data[key] = mergeLists(data[key], value)
		}
	}
	return nil
}

// mergeCertificates drops expired and duplicate certificates.
func mergeCertificates(text string, now time.Time) string {
	var out strings.Builder
	seen := map[string]bool{}
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil || now.After(cert.NotAfter) || seen[string(cert.Raw)] {
			continue
		}
		seen[string(cert.Raw)] = true
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}) // a Builder takes everything
	}
	return out.String()
}

// mergeLists joins two lists of strings. It ignores a value that is not a list.
func mergeLists(a, b string) string {
	var all, more []string
	_ = json.Unmarshal([]byte(a), &all)
	_ = json.Unmarshal([]byte(b), &more)
	seen := make(map[string]bool, len(all)+len(more))
	for _, s := range all {
		seen[s] = true
	}
	for _, s := range more {
		if !seen[s] {
			seen[s] = true
			all = append(all, s)
		}
	}
	if all == nil {
		all = []string{}
	}
	out, err := json.Marshal(all)
	if err != nil {
		return b
	}
	return string(out)
}
