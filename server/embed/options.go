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

// Options say what a control plane is made of. The zero value is one in memory, with the
// rights that roles give, which is reached through Config and Handler alone.
type Options struct {
	// Store opens what the objects are kept in: sqlite.At(URL), postgres.At(URL), or any
	// driver that passes the suite of package storetest. New calls it, and Close closes what it
	// returned. Nil: all is in memory, at most a GiB with past versions of objects, and gone at
	// the end.
	Store func(ctx context.Context) (sqlstore.Driver, error)
	// Retention is how long past versions of objects are kept; default 5 minutes. EventTTL
	// is how long events are; default one hour.
	Retention, EventTTL time.Duration
	// Past serves the past versions as the group history.rowlock.dev, to who may get the objects.
	Past bool

	// Listener is where the API is served, with TLS. Run closes it. Both nil: requests come
	// by Handler alone, from a listener of the program's own.
	Listener net.Listener
	TLS      *tls.Config
	// Address is host:port at which others reach the API; default that of Listener.
	Address string

	// ClientAuthorities are whose client certificates are believed; nil: nobody's.
	ClientAuthorities *x509.CertPool
	// Authenticators are asked before all others who sends a request, TokenAuthenticators
	// whose a bearer token is. Tokens of service accounts are known besides.
	Authenticators      []authx.Authenticator
	TokenAuthenticators []authx.TokenAuthenticator
	// Anonymous lets requests without credentials in, as system:anonymous.
	Anonymous bool
	// Authorizer decides on requests. Whoever is in system:masters may do everything all the
	// same. Nil: roles, bindings and node agents decide, as in every cluster.
	Authorizer authx.Authorizer

	// AccountKey signs tokens of service accounts; nil: one that is made, and forgotten at the
	// end. Issuer is who issues them; default https://kubernetes.default.svc.
	AccountKey crypto.Signer
	Issuer     string

	// Kinds are kinds as Go types, Definitions kinds as CustomResourceDefinitions. They are
	// served once Ready says so, and brought up to date in a store that has others by their
	// names.
	Kinds       []Kind
	Definitions []*apiextensionsv1.CustomResourceDefinition

	// Admission are rules of the program's own, which run behind the plugins of the release;
	// EnableAdmission and DisableAdmission name those of these that run, or do not, in spite of
	// their default.
	Admission                         []Admission
	EnableAdmission, DisableAdmission []string

	// Controllers are those that run, as --controllers names them; nil: "*". An empty list
	// that is not nil: those alone that have no name there.
	Controllers []string

	// Release is the Kubernetes release that the server behaves as, "1.33"; default "1.32".
	// MinCompatibility is the oldest that other servers on the store may be, as with
	// --min-compatibility-version.
	Release, MinCompatibility string

	// FeatureGates, RuntimeConfig are as the flags of these names: NAME=true, KEY=false.
	FeatureGates, RuntimeConfig []string
	// ServiceNetworks are where addresses of services come from; none: 10.96.0.0/16.
	ServiceNetworks []netip.Prefix

	// MaxObjectBytes is the size of the largest object, as JSON: 1.5 MiB, the default, to 32 MiB.
	MaxObjectBytes int64

	// Version is what the API says that it is, behind v1.32.13+ or v1.36.2+; default "rowlock.embedded".
	Version string
	// Grace is how long requests under way may take to finish at the end; default a minute.
	Grace time.Duration
	Log   *slog.Logger // nil: nothing is logged

	// Configure changes what comes of all this before the server is made. It is the one part
	// that is not stable: server.Config is the inside of this program.
	Configure func(*server.Config)
	// ConfigureStore does the same with the store on top of the driver, and is no more stable.
	ConfigureStore func(*sqlstore.Config)
}
