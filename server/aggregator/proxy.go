package aggregator

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/relay"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/wire"
)

// most are the proxies that a request may have come through: an APIService can lead back
// to where it came from.
const maxHops = 16

// Proxy forwards requests to aggregated servers. Requests have passed the filters: their scope holds the
// user, and the permit of an authorizer.
type Proxy struct {
	By *Aggregator
	// RejectRedirects answers 502 where a server would send clients elsewhere.
	RejectRedirects bool
	// Timeout bounds an upgrade request until the new protocol is spoken. Others have a deadline in
	// their context.
	Timeout time.Duration
	// Lasts reports which requests are bounded in number elsewhere, because they last.
	Lasts func(*request.Info) bool
	// Read and Write are how many other requests that read, or write, may be under way to
	// all servers at once. One server has half of that, and one user half of those. 0 is
	// no limit.
	Read, Write int
	// Fail answers a request with an error.
	Fail func(w http.ResponseWriter, r *http.Request, err error)

	slots slots
}

// Serves returns the APIService that delegates the resource of a request to another server; nil: none does.
func (a *Aggregator) Serves(i *request.Info) *apiregistrationv1.APIService {
	services := a.Services()
	if !services.AnyRemote() {
		return nil
	}
	if i.Path == "/api" || strings.HasPrefix(i.Path, "/api/") {
		return services.Remote(schema.GroupVersion{Version: "v1"})
	}
	// APIServices are never delegated: a server that took them over could not be removed.
	rest, ok := strings.CutPrefix(i.Path, "/apis/")
	if !ok {
		return nil
	}
	group, rest, ok := strings.Cut(rest, "/")
	if !ok || group == "" || group == apiregistrationv1.GroupName {
		return nil
	}
	version, _, _ := strings.Cut(rest, "/")
	return services.Remote(schema.GroupVersion{Group: group, Version: version})
}

// Mark records in the request whether another server answers it. While APIServices cannot be read, any request may
// be one of those: its handler calls Serves, and fails after the filters that record and count failures.
func (a *Aggregator) Mark(i *request.Info, h http.Header) {
	var s *apiregistrationv1.APIService
	switch unread := cache.Try(func() { s = a.Serves(i) }); {
	case unread != nil:
		i.Remote = true
	case s != nil:
		i.Remote, i.Upgrade = true, relay.Upgrades(h)
	default:
		i.Local = true
	}
}

// Serve answers a request that s leaves to another server.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, s *apiregistrationv1.APIService) {
	scope := request.From(r.Context())
	switch {
	case scope.User == nil || !scope.Permit.Valid():
		http.Error(w, "missing user", http.StatusInternalServerError)
		return
	case leavesPath(r.Method, r.URL.Path):
		http.NotFound(w, r)
		return
	case !p.By.Available(s):
		unavailable(w, scope)
		return
	case hops(r.Header) > maxHops:
		http.Error(w, "loop detected", http.StatusLoopDetected)
		return
	}
	scope.Begun() // the other server sees to how a watch begins
	if !p.Lasts(scope.Info) {
		leave := p.enter(r, scope, s.Name)
		if leave == nil {
			scope.Terminated = http.StatusTooManyRequests
			p.Fail(w, r, apierrors.NewTooManyRequests("Too many requests to "+s.Name+" at once, please try again later.", 1))
			return
		}
		defer leave()
	}
	ctx := r.Context()
	if r.ProtoMajor == 1 && scope.Info.Verb == "watch" {
		var stop func()
		ctx, stop = wire.UntilClosed(ctx)
		defer stop()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e := &exchange{Proxy: p, service: s, scope: scope, who: scope.User}
	if scope.Info.Upgrade && p.Timeout > 0 {
		e.late = time.AfterFunc(p.Timeout, cancel)
		defer e.late.Stop()
	}
	e.reverse().ServeHTTP(relay.NewFinal(w, cancel), r.WithContext(ctx))
}

// hops counts the proxies in the headers of a request.
func hops(h http.Header) int {
	n := 0
	for _, line := range h.Values("X-Forwarded-For") {
		n += 1 + strings.Count(line, ",")
	}
	return n
}

func unavailable(w http.ResponseWriter, scope *request.Scope) {
	scope.Terminated = http.StatusServiceUnavailable
	http.Error(w, "service unavailable", http.StatusServiceUnavailable)
}

// exchange is one request to another server, with its answer.
type exchange struct {
	*Proxy
	service *apiregistrationv1.APIService
	scope   *request.Scope
	who     *authx.Identity
	address string      // where it went
	late    *time.Timer // ends it if no other protocol is spoken by then; may be nil
}

// buffers are the buffers for copying answers.
var buffers = bufferPool{sync.Pool{New: func() any { return new([32 << 10]byte) }}}

type bufferPool struct{ sync.Pool }

func (p *bufferPool) Get() []byte  { return p.Pool.Get().(*[32 << 10]byte)[:] }
func (p *bufferPool) Put(b []byte) { p.Pool.Put((*[32 << 10]byte)(b)) }

// quiet suppresses the log of the package that copies.
var quiet = log.New(io.Discard, "", 0)

func (e *exchange) reverse() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: e.rewrite, Transport: e, ModifyResponse: e.answered, ErrorHandler: e.failed,
		FlushInterval: -1, BufferPool: &buffers, ErrorLog: quiet,
	}
}

func (e *exchange) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.RawQuery = readAlike(r.In.URL.Query()).Encode()
	h := r.Out.Header
	h["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
	// An escaped slash reaches the other server as a slash.
	uri := path.Join("/", (&url.URL{Path: r.In.URL.Path}).EscapedPath())
	if strings.HasSuffix(r.In.URL.Path, "/") && uri != "/" {
		uri += "/"
	}
	h["X-Forwarded-Uri"], h["X-Forwarded-Proto"] = []string{uri}, []string{"https"}
	h["Audit-Id"] = []string{e.scope.ID}
}

// readAlike returns a query that all servers read as the authorizer did. Of repeated selectors the authorizer reads the first, other
// servers may read the last. Encoding the query again drops the parts that servers read in different ways.
func readAlike(q url.Values) url.Values {
	for _, name := range []string{"fieldSelector", "labelSelector", "watch"} {
		if values := q[name]; len(values) > 1 {
			q[name] = values[:1]
		}
	}
	return q
}

// RoundTrip implements http.RoundTripper.
func (e *exchange) RoundTrip(out *http.Request) (_ *http.Response, err error) {
	if e.address, err = e.By.Address(out.Context(), e.service); err != nil {
		return nil, err
	}
	out.Header["X-Forwarded-Host"] = []string{e.address}
	return e.By.send(e.service, e.address, e.who, out)
}

// Via marks answers of other servers: clients of the history API must not take their resource versions for
// those of this server.
const Via = "1.1 rowlock-aggregator"

const redirected = "the backend attempted to redirect this request, which is not permitted"

// answered looks at an answer before it is passed on.
func (e *exchange) answered(resp *http.Response) error {
	if e.late != nil && resp.StatusCode == http.StatusSwitchingProtocols {
		e.late.Stop()
	}
	relay.StripResponse(resp.Header)
	delete(resp.Header, "Cache-Control") // this server's stays
	delete(resp.Header, "Refresh")
	resp.Header.Add("Via", Via)
	location := resp.Header.Get("Location")
	if location == "" || resp.StatusCode < 300 || resp.StatusCode > 399 {
		return nil
	}
	if e.RejectRedirects {
		resp.Body.Close()
		resp.StatusCode, resp.Header = http.StatusBadGateway, http.Header{"Via": {Via}}
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(redirected)), int64(len(redirected))
		return nil
	}
	if to, err := url.Parse(location); err == nil && to.Host == e.address {
		to.Scheme, to.Host, to.User = "", "", nil // it is reached through here
		resp.Header.Set("Location", to.String())
	}
	return nil
}

// failed answers with the error that explains why there is no answer.
func (e *exchange) failed(w http.ResponseWriter, _ *http.Request, err error) {
	var resolve *ResolveError
	var config *ConfigError
	switch {
	case errors.As(err, &resolve):
		unavailable(w, e.scope)
	case errors.As(err, &config):
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		e.scope.Terminated = http.StatusServiceUnavailable
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "error trying to reach service: "+err.Error()) // the client may be gone
	}
}
