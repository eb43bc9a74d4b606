package filters

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/relay"
)

// SameSite authenticates requests by next, but accepts no client certificate for a request by which a page of another site changes
// something or opens a WebSocket. A browser presents the certificate of its user whichever page sends the request: a page could create
// objects by a POST without a preflight request, and run commands by a WebSocket. Pages of the given origins may use the certificate.
// Programs that are no browsers do not send the headers by which such requests are found, and browsers send no other credential by
// themselves.
func SameSite(next authx.Authenticator, origins []*regexp.Regexp) authx.Authenticator {
	return sameSite{next, origins}
}

type sameSite struct {
	next    authx.Authenticator
	origins []*regexp.Regexp
}

var errOtherSite = errors.New("a page of another site cannot use a client certificate")

// Authenticate implements authx.Authenticator.
func (s sameSite) Authenticate(r *http.Request) (*authx.Authenticated, bool, error) {
	who, mine, err := s.next.Authenticate(r)
	if who != nil && !who.CertificateEnds.IsZero() && s.foreign(r) {
		return nil, true, errOtherSite
	}
	return who, mine, err
}

// protection finds requests of other sites by what browsers say about them.
var protection http.CrossOriginProtection

// foreign reports whether a page of another site has sent a request that it may not send.
func (s sameSite) foreign(r *http.Request) bool {
	socket := relay.WebSocket(r.Header)
	if socket { // pages can read WebSockets of other sites, so the method is not safe
		r = &http.Request{Method: http.MethodPost, Host: r.Host, Header: r.Header}
	}
	if protection.Check(r) == nil {
		return false
	}
	origin := r.Header.Get("Origin")
	return !matches(s.origins, origin) && (!socket || !local(origin)) // WebSocket libraries that need an origin are often given localhost
}

// local reports whether an origin is this machine.
func local(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}
