package server

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/forms"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/discovery"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/health"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/verbs/podverbs"
	"github.com/rowlock/rowlock/sqlstore"
)

// step is a filter and its name; tests check the order of the names.
type step struct {
	name   string
	filter filters.Filter
}

// steps returns all filters in the order in which requests pass them. A step that the configuration does not need
// has a nil filter.
func (s *Server) steps(who authx.Authenticator) []step {
	c := &s.cfg
	inFlight := filters.NewInFlight(c.Limits, s.flows)
	inFlight.Turns = s.turns
	inFlight.Observe, inFlight.Refused, inFlight.Limited = s.Metrics.InFlight, s.Metrics.Refused, s.Metrics.Limited
	selectors := filters.NewSelectors(s.fail)
	selectors.Refused = s.Metrics.Refused
	return []step{
		{"scope", filters.Scope(c.Clock)},
		{"remote", filters.Remote(s.Ready, s.aggregated.Mark)},
		{"metrics", filters.Measure(s.Metrics.Began, s.Metrics.Returned)},
		{"trace", filters.Trace(c.Tracer)},
		{"access log", filters.AccessLog(c.Log, health.Serves)},
		{"recover", filters.Recover(c.Log, s.Metrics.Panicked)},
		{"leaving", s.refuseDraining()},
		{"strict transport", filters.HSTS(c.Serving.StrictTransport)},
		{"goaway", filters.Goaway(c.Serving.GoawayChance)},
		{"starting", filters.Starting(s.started, s.Health, health.Serves)},
		{"went back", filters.Rewound(s.cfg.Store.Rewound, s.servedDuringReload, s.refuseRewound)},
		{"drain", filters.EndWith(s.watching, c.Serving.WatchGrace)},
		{"cross origin", filters.CORS(c.Serving.Origins)},
		{"audit", filters.Audit(c.Audit, filters.Audited{Objects: answersObjects, JSON: s.auditedAnswer, Encode: s.Cache.JSON().Encode}, c.Log)},
		{"deadline", filters.Deadline(c.RequestTimeout, s.fail)},
		{"authenticate", filters.Authenticate(filters.SameSite(who, c.Serving.Origins), s.Metrics.Authenticated, c.Log, s.fail)},
		{"audit received", filters.AuditReceived(c.Audit)},
		{"impersonate", filters.Impersonate(c.Authorizer, filters.Impersonation{Constrained: c.Feature("ConstrainedImpersonation"), Unnamed: c.Release.Has(release.BadRequests)}, c.Log, s.fail)},
		{"around", filters.Around(c.Around)},
		{"long selectors", selectors.Filter},
		{"in flight", inFlight.Filter},
		{"authorize", filters.Authorize(c.Authorizer, s.Metrics.Authorized, c.Log, s.fail)},
		{"revoked", s.revoked.Filter},
	}
}

// newFlows makes the classification of requests into priority levels, and their seats.
func (s *Server) newFlows() *flow.Classifier {
	c := &s.cfg
	limits := c.Limits
	limits.Read, limits.Write = max(c.MaxInFlight, 0), max(c.MaxMutatingInFlight, 0)
	limits.Sizes = s.objects.Sizes()
	config := limits.Seats()
	config.Plain, config.Patience, config.Catalogue = c.PlainLimits, c.RequestTimeout/4, c.Catalogue
	return flow.New(s.Cache, config)
}

// furtherVerbs returns the verbs that a request needs in addition to its own.
func (s *Server) furtherVerbs(i *request.Info) []string {
	if podverbs.NeedsCreate(i, s.cfg.Feature) {
		return []string{"create"}
	}
	return nil
}

func chain(steps []step, last http.Handler) http.Handler {
	h := last
	for _, step := range slices.Backward(steps) {
		if step.filter != nil {
			h = step.filter(h)
		}
	}
	return h
}

// inside returns the filters for requests of the server to itself: the client is known, and neither the duration
// nor the number of requests is limited.
func inside(steps []step) []step {
	var list []step
	for _, step := range steps {
		switch step.name {
		case "scope", "metrics", "access log", "recover", "went back", "audit", "audit received", "authorize":
			list = append(list, step)
		case "authenticate":
			step.filter = asSystem
			list = append(list, step)
		}
	}
	return list
}

// servedDuringReload reports whether requests for a path are served while objects are reloaded.
func (s *Server) servedDuringReload(path string) bool {
	return health.Serves(path) || path == "/metrics" || path == "/metrics/slis"
}

func (s *Server) refuseRewound(w http.ResponseWriter, r *http.Request) {
	s.fail(w, r, sqlstore.ErrRewound)
}

// refuseDraining counts requests, and refuses them once the server drains if so configured. It is nil if
// neither is needed.
func (s *Server) refuseDraining() filters.Filter {
	if !s.cfg.Serving.RefuseLeaving && s.cfg.Listener != nil {
		return nil
	}
	refuse, count := filters.Draining(s.leaving), filters.Counted(func(by int) { s.running.Add(int64(by)) })
	return func(next http.Handler) http.Handler { return refuse(count(next)) }
}

// route serves a request that has passed all filters.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	info := request.From(r.Context()).Info
	if !info.Local {
		if service := s.aggregated.Serves(info); service != nil {
			s.proxy.Serve(w, r, service)
			return
		}
	}
	if info.IsResource {
		s.Verbs.ServeHTTP(w, r)
	} else {
		s.routePath(w, r)
	}
}

func (s *Server) routePath(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if discovery.Serves(path) { // it follows definitions while it makes documents
		s.discovery.ServeHTTP(w, r)
		return
	}
	s.Custom.Follow()
	switch {
	case health.Serves(path):
		s.Health.ServeHTTP(w, r)
	case path == "/openapi/v2":
		s.openapi.ServeV2(w, r)
	case path == "/openapi/v3" || strings.HasPrefix(path, "/openapi/v3/"):
		s.openapi.ServeV3(w, r)
	case path == "/metrics":
		s.Metrics.ServeHTTP(w, r)
	case path == "/metrics/slis":
		s.Health.SLIs().ServeHTTP(w, r)
	case path == "/" || path == "/index.html":
		s.index(w, r)
	case s.flows.Dump(path) != nil:
		s.flows.Dump(path).ServeHTTP(w, r)
	default:
		if h := s.handlerOf(path); h != nil {
			h.ServeHTTP(w, r)
		} else if !s.routed(w, r) {
			http.NotFound(w, r)
		}
	}
}

// handlerOf returns the additional handler of a path: its own, or that of the longest path above it; nil for a path without one.
func (s *Server) handlerOf(path string) http.Handler {
	if h := s.cfg.Paths[path]; h != nil {
		return h
	}
	above := ""
	for p := range s.cfg.Paths {
		if strings.HasSuffix(p, "/") && strings.HasPrefix(path, p) && len(p) > len(above) {
			above = p
		}
	}
	return s.cfg.Paths[above]
}

// index lists the paths of this server.
func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	paths := []string{"/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/apis/", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/openid/v1/jwks", "/readyz", "/version"}
	seen := map[schema.GroupVersion]bool{}
	list := func(gv schema.GroupVersion) {
		if gv.Group == "" || seen[gv] {
			return
		}
		if group := (schema.GroupVersion{Group: gv.Group}); !seen[group] {
			seen[group] = true
			paths = append(paths, "/apis/"+gv.Group)
		}
		seen[gv] = true
		paths = append(paths, "/apis/"+gv.String())
	}
	for _, res := range s.cfg.Catalogue.All() {
		list(schema.GroupVersion{Group: res.Group, Version: res.Version})
	}
	for _, one := range s.aggregated.Services().All() {
		if one.Spec.Service != nil {
			list(aggregator.GroupVersion(one))
		}
	}
	for path := range s.cfg.Paths {
		if !strings.HasPrefix(path, "/debug/") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	status.WriteJSON(w, r, http.StatusOK, &metav1.RootPaths{Paths: slices.Compact(paths)})
}

// fail sends an error for a failure outside the verbs.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.failIn(w, r, err, s.forms())
}

// failText is fail for paths whose errors, as in a stock server, can have any form but CBOR.
func (s *Server) failText(w http.ResponseWriter, r *http.Request, err error) {
	f := s.forms()
	f.CBOR = false
	s.failIn(w, r, err, f)
}

func (s *Server) failIn(w http.ResponseWriter, r *http.Request, err error, served forms.Forms) {
	info := request.From(r.Context()).Info
	st, unknown := status.Of(err, schema.GroupResource{Group: info.Group, Resource: info.Resource})
	if unknown {
		s.cfg.Log.Error("request failed", "uri", r.URL.RequestURI(), "error", err)
	}
	status.Write(w, r, st, served)
}

// Route is a read-only document with one media type.
type Route struct {
	Produces string
	Handler  http.Handler
}

// routed serves a request if its path is that of a route or below one, and reports whether it did.
func (s *Server) routed(w http.ResponseWriter, r *http.Request) bool {
	for root, route := range s.cfg.Routes {
		rest, found := strings.CutPrefix(r.URL.Path, root)
		if !found || rest != "" && rest[0] != '/' {
			continue
		}
		if err := route.refuses(r, rest); err != nil {
			s.fail(w, r, err)
		} else {
			route.Handler.ServeHTTP(w, r)
		}
		return true
	}
	return false
}

func (route Route) refuses(r *http.Request, rest string) error {
	switch {
	case rest != "" && rest != "/":
		return status.NoResource()
	case r.Method != http.MethodGet:
		return status.NotAllowed()
	}
	return codecs.Acceptable(r, []string{route.Produces})
}
