package certificates

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const cleanerAgent = reconcile.ManagerAgent + "certificate-controller" // field manager of Cleaner's writes

// The resync period, and the ages at which requests are deleted: from the decision, or from the creation of pending ones.
const (
	cleanEvery  = time.Hour
	keepDecided = time.Hour
	keepPending = 24 * time.Hour
)

// Cleaner deletes obsolete requests for certificates: those that were granted, denied or have failed
// an hour ago, those that have been pending for a day, and those whose certificate has expired.
//
// It checks all requests once an hour. Clients that may create requests cause one such check an hour and one deletion for
// each request.
type Cleaner struct{ reconcile.Base }

// Run works until ctx ends.
func (c *Cleaner) Run(ctx context.Context) error {
	l := &reconcile.Loop{Base: c.Base, Failure: "cannot delete a certificate request", Resync: cleanEvery}
	l.Reconcile = func(ctx context.Context, key reconcile.Key) (again reconcile.Result, err error) {
		item := c.Cache.Get(requestsStorage, "", key.Name)
		why := useless(item, c.Now())
		if why == "" {
			return again, nil
		}
		if err = c.Delete(ctx, cleanerAgent, requestsPath+url.PathEscape(key.Name), item); err == nil {
			c.Log.Info("a certificate request is deleted", "name", key.Name, "because", why)
		}
		return again, err
	}
	l.Begin = func(ctx context.Context) error {
		c.Cache.Snapshot(requestsStorage).Ascend("", "", "", func(item *cache.Item) bool {
			if useless(item, c.Now()) != "" {
				l.Queue.AddAfter(reconcile.KeyOf(item), 0)
			}
			return ctx.Err() == nil
		})
		return nil
	}
	return l.Run(ctx)
}

// useless returns the reason why a request is of no use any more; "": it is.
func useless(item *cache.Item, now time.Time) string {
	var r certificatesv1.CertificateSigningRequest
	if !reconcile.Decode(item, &r) || r.DeletionTimestamp != nil {
		return ""
	}
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
			return "its certificate has expired"
		}
	}
	if len(r.Status.Conditions) == 0 && older(r.CreationTimestamp, keepPending) {
		return "nobody has decided it"
	}
	return ""
}

// expired reports whether the first of some certificates has expired.
func expired(text []byte, now time.Time) bool {
	block, _ := pem.Decode(text)
	if block == nil {
		return false
	}
	list, err := x509.ParseCertificates(block.Bytes)
	return err == nil && len(list) > 0 && now.After(list[0].NotAfter)
}
