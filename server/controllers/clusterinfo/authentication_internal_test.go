package clusterinfo

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// mapsAPI keeps ConfigMaps.
type mapsAPI struct {
	maps   map[string]*corev1.ConfigMap
	writes int
}

func (m *mapsAPI) Call(_ context.Context, _, method, path, _ string, body, into any) error {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if method == http.MethodGet {
		found := m.maps[name]
		if found == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
		}
		found.DeepCopyInto(into.(*corev1.ConfigMap))
		return nil
	}
	m.writes++
	obj := body.(*corev1.ConfigMap).DeepCopy()
	m.maps[obj.Name] = obj
	return nil
}

func authorityPEM(t *testing.T, until time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: until, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestClusterAuthentication: two servers publish their data, once, and expired data goes.
func TestClusterAuthentication(t *testing.T) {
	start := time.Now()
	ended, first, second := authorityPEM(t, start.Add(-time.Hour)), authorityPEM(t, start.Add(time.Hour)), authorityPEM(t, start.Add(100*time.Hour))
	synctest.Test(t, func(t *testing.T) {
		api := &mapsAPI{maps: map[string]*corev1.ConfigMap{}}
		run := func(now time.Time, data map[string]string) {
			ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second) // two rounds
			defer cancel()
			began := time.Now()
			c := &Authentication{Base: reconcile.Base{API: api, Log: controllertest.DiscardLog, Clock: func() time.Time { return now.Add(time.Since(began)) }}, Data: func() (map[string]string, error) { return data, nil }}
			if err := c.Run(ctx); err != nil {
				t.Fatal(err)
			}
		}
		run(start, map[string]string{"client-ca-file": ended + first, "requestheader-allowed-names": `["a"]`, "requestheader-group-headers": `[]`})
		if api.writes != 2 {
			t.Errorf("%d writes", api.writes)
		}
		run(start, map[string]string{"client-ca-file": second + first, "requestheader-allowed-names": `["b","a"]`})
		data := api.maps[authenticationMap].Data
		if api.writes != 3 || data["client-ca-file"] != first+second || data["requestheader-allowed-names"] != `["a","b"]` || data["requestheader-group-headers"] != `[]` {
			t.Errorf("%d writes: %v", api.writes, data)
		}
		run(start.Add(2*time.Hour), map[string]string{"client-ca-file": second})
		if data = api.maps[authenticationMap].Data; data["client-ca-file"] != second {
			t.Errorf("an authority that has ended: %v", data)
		}
		if since := api.maps[trackingMap].Data["since"]; since != start.UTC().Format(time.DateOnly) {
			t.Errorf("since %q", since)
		}
	})
}
