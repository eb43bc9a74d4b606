package webhook

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/metricset"
)

// ObsoleteCertificates counts answers of servers with obsolete certificates, and connections that failed because of them:
// certificates with hosts only in the common name, and those signed with SHA-1. A nil ObsoleteCertificates counts nothing.
type ObsoleteCertificates struct {
	*metricset.Set
	names, sha1 prometheus.Counter
}

// NewObsoleteCertificates makes the counters of a component: "webhooks" or "kube_aggregator".
func NewObsoleteCertificates(caller string) *ObsoleteCertificates {
	s := metricset.New("apiserver_" + caller + "_")
	counter := func(name, servers, failures string) prometheus.Counter {
		return s.Counter(name, "[ALPHA] Counts the number of requests to servers "+servers+" in their serving certificate OR the number of connection failures due to "+failures+
			" (either/or, based on the runtime environment)")
	}
	return &ObsoleteCertificates{
		Set:   s,
		names: counter("x509_missing_san_total", "missing SAN extension", "the lack of x509 certificate SAN extension missing"),
		sha1:  counter("x509_insecure_sha1_total", "with insecure SHA1 signatures", "the insecure SHA1 signatures"),
	}
}

// Observe counts the result of a request: an answer or an error.
func (d *ObsoleteCertificates) Observe(resp *http.Response, err error) {
	switch {
	case d == nil:
	case err != nil:
		d.observeFailure(err)
	case resp.TLS != nil && len(resp.TLS.PeerCertificates) > 0:
		if !slices.ContainsFunc(resp.TLS.PeerCertificates[0].Extensions, isNames) {
			d.names.Inc()
		}
		if slices.ContainsFunc(resp.TLS.PeerCertificates, isSHA1) {
			d.sha1.Inc()
		}
	}
}

func (d *ObsoleteCertificates) observeFailure(err error) {
	if host, ok := errors.AsType[x509.HostnameError](err); ok && strings.Contains(host.Error(), "certificate relies on legacy Common Name field") {
		d.names.Inc()
	}
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		if _, why, found := strings.Cut(unknown.Error(), "cannot verify signature: insecure algorithm"); found && strings.Contains(why, "SHA1") {
			d.sha1.Inc()
		}
	}
}

var namesID = asn1.ObjectIdentifier{2, 5, 29, 17}

func isNames(e pkix.Extension) bool { return e.Id.Equal(namesID) }

// isSHA1 reports whether a certificate is signed with SHA-1, by another one: signatures of roots
// by themselves are not relied on.
func isSHA1(c *x509.Certificate) bool {
	return (c.SignatureAlgorithm == x509.SHA1WithRSA || c.SignatureAlgorithm == x509.ECDSAWithSHA1) && !bytes.Equal(c.RawIssuer, c.RawSubject)
}
