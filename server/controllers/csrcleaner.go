package controllers

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
)

const (
	cleanerAgent = managerAgent + "certificate-controller"
)

// How long requests for certificates are kept: those that were decided since then, and those
// that nobody has decided since they were made.
const (
	keepDecided = time.Hour
	keepPending = 24 * time.Hour
)

// CertificateCleaner deletes requests for certificates that are of no use any more: those that
// were granted, denied or have failed an hour ago, those that waited for a day, and those
// whose certificate has run out.
//
// It looks at all of them once an hour: who may make requests causes that, and a deletion each.
type CertificateCleaner struct {
	API   API
	Cache *cache.Cache
	Log   *slog.Logger
	Clock func() time.Time
	Moves Moves         // of the clock
	Every time.Duration // 0: an hour
}

// certificateCleaner builds the controller.
func certificateCleaner(h Host, c Config) func(context.Context) error {
	return (&CertificateCleaner{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Moves: h.Moves}).Run
}

// Run works until ctx ends.
func (c *CertificateCleaner) Run(ctx context.Context) error {
	if c.Every == 0 {
		c.Every = time.Hour
	}
	for ctx.Err() == nil {
		c.pass(ctx)
		c.Moves.wait(ctx, c.Clock, c.Every)
	}
	return nil
}

func (c *CertificateCleaner) pass(ctx context.Context) {
	c.Cache.Snapshot(requestsKey).Ascend("", "", "", func(item *cache.Item) bool {
		var r certificatesv1.CertificateSigningRequest
		if item.Corrupt != nil || json.Unmarshal(item.JSON(), &r) != nil || r.DeletionTimestamp != nil {
			return true
		}
		why := useless(&r, c.Clock())
		if why == "" {
			return true
		}
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion}}
		err := ignoreGone(c.API.Call(ctx, cleanerAgent, http.MethodDelete, requestsPath+url.PathEscape(r.Name), "application/json", &options, nil))
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			c.Log.Warn("cannot delete a certificate request", "name", r.Name, "error", err)
		default:
			c.Log.Info("a certificate request goes", "name", r.Name, "because", why)
		}
		return true
	})
}

// useless says why a request is of no use any more; "": it is.
func useless(r *certificatesv1.CertificateSigningRequest, now time.Time) string {
	older := func(t metav1.Time, than time.Duration) bool { return !t.IsZero() && now.Sub(t.Time) > than }
	issued := len(r.Status.Certificate) > 0
	for _, c := range r.Status.Conditions {
		switch {
		case c.Type == certificatesv1.CertificateApproved && issued && older(c.LastUpdateTime, keepDecided):
			return "it was granted long ago"
		case c.Type == certificatesv1.CertificateDenied && older(c.LastUpdateTime, keepDecided):
			return "it was denied long ago"
		case c.Type == certificatesv1.CertificateFailed && older(c.LastUpdateTime, keepDecided):
			return "it failed long ago"
		case c.Type == certificatesv1.CertificateApproved && issued && expired(r.Status.Certificate, now):
			return "its certificate has run out"
		}
	}
	if len(r.Status.Conditions) == 0 && older(r.CreationTimestamp, keepPending) {
		return "nobody has decided it"
	}
	return ""
}

// expired says whether the first of some certificates has run out.
func expired(text []byte, now time.Time) bool {
	block, _ := pem.Decode(text)
	if block == nil {
		return false
	}
	list, err := x509.ParseCertificates(block.Bytes)
	return err == nil && len(list) > 0 && now.After(list[0].NotAfter)
}
