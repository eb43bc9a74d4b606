package embed

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/netip"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/sqlstore"
)

// Options configure a control plane. The zero value is one in memory, with RBAC, which clients reach through
// Config and Handler only.
type Options struct {
	// Store opens the store of the objects: sqlite.At(URL), postgres.At(URL), or any driver that passes the
	// suite of package storetest. New calls it, and Close closes the result. Nil: everything is in memory, at
	// most one GiB with past versions of objects, and is lost at the end.
	Store func(ctx context.Context) (sqlstore.Driver, error)
	// Retention is the retention of past versions of objects; default 5 minutes. EventTTL
	// is the lifetime of events; default one hour.
	Retention, EventTTL time.Duration
	// Past serves past versions as the group history.rowlock.dev, to users that may get the objects.
	Past bool

	// The server serves the API with TLS on Listener, and Run closes it. Both nil: requests arrive only through Handler,
	// from a listener of the program.
	Listener net.Listener
	TLS      *tls.Config
	// Address is the host:port of the API for others; default that of Listener.
	Address string

	// ClientAuthorities are the authorities of client certificates; nil: none.
	ClientAuthorities *x509.CertPool
	// Authenticators precede all others, TokenAuthenticators are for bearer tokens. Service account tokens
	// are also accepted.
	Authenticators      []authx.Authenticator
	TokenAuthenticators []authx.TokenAuthenticator
	// Anonymous lets requests without credentials in, as system:anonymous.
	Anonymous bool
	// Authorizer decides on requests. system:masters may always do everything. Nil: roles, bindings and the
	// node authorizer decide, as in every cluster.
	Authorizer authx.Authorizer

	// AccountKey signs service account tokens; nil: a temporary one. Issuer is their issuer; default
	// https://kubernetes.default.svc.
	AccountKey crypto.Signer
	Issuer     string

	// Kinds are kinds as Go types, Definitions kinds as CustomResourceDefinitions. They are served once Ready
	// returns. If the store has older ones of the same names, New updates
	// them.
	Kinds       []Kind
	Definitions []*apiextensionsv1.CustomResourceDefinition

	// Admission are the program's own rules, which run after the plugins of the release; EnableAdmission and
	// DisableAdmission override which of those run by default.
	Admission                         []Admission
	EnableAdmission, DisableAdmission []string

	// Controllers are the names of the controllers to run, as in --controllers; nil: "*". An empty list that is not
	// nil: only those without a name there.
	Controllers []string

	// Release is the Kubernetes release that the server behaves as, "1.33"; default "1.32".
	// MinCompatibility is the oldest that other servers on the store may be, as with
	// --min-compatibility-version.
	Release, MinCompatibility string

	// FeatureGates, RuntimeConfig are as the flags of these names: NAME=true, KEY=false.
	FeatureGates, RuntimeConfig []string
	// ServiceNetworks are the networks of services; none: 10.96.0.0/16.
	ServiceNetworks []netip.Prefix

	// MaxObjectBytes is the size of the largest object, as JSON: 1.5 MiB, the default, to 32 MiB.
	MaxObjectBytes int64

	// Version is the API's version after v1.32.13+ or v1.36.2+; default "rowlock.embedded".
	Version string
	// Grace is the time for requests in flight at the end; default a minute.
	Grace time.Duration
	Log   *slog.Logger // nil: nothing is logged

	// Configure changes the resulting configuration before the server is made. It is not stable, because
	// server.Config is internal.
	Configure func(*server.Config)
	// ConfigureStore does the same for the store on top of the driver, and is not stable either.
	ConfigureStore func(*sqlstore.Config)
}
