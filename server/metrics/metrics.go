// Package metrics counts the server's work, under the names that dashboards for API servers use. Label values
// come from the catalogue and from small fixed sets, never from unauthenticated clients; a repeated kind of
// request costs no look-up by label.
package metrics

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
	"unique"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs/metricset"
	"github.com/rowlock/rowlock/server/apply/ownership"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/metrics/scrape"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/request"
)

// Metrics holds the server's metrics in a registry of their own.
type Metrics struct {
	Registry *prometheus.Registry
	Shown    Selection // of the metrics in Registry; set before first use
	Delivery *Delivery // of watches
	// Aggregated lists the versions that aggregated servers serve; set before the first request to one.
	Aggregated func() []schema.GroupVersion

	byGroup   bool // metrics of Kubernetes have the labels group and resource
	catalogue *kinds.Catalogue
	clock     func() time.Time

	requests    *prometheus.CounterVec
	durations   *histograms
	sizes       *histograms
	inFlight    *prometheus.GaugeVec
	reading     prometheus.Gauge // of inFlight
	writing     prometheus.Gauge
	longRunning *prometheus.GaugeVec
	refused     *prometheus.CounterVec
	limited     *prometheus.CounterVec
	panics      prometheus.Counter
	handshakes  prometheus.Counter
	unaccepted  prometheus.Counter
	slis        *histograms
	own         *prometheus.CounterVec
	aborts      *prometheus.CounterVec
	terminated  *prometheus.CounterVec
	deprecated  *prometheus.GaugeVec

	ownership implementations

	watches   *watches
	decisions *decisions
	customs   customs

	scrapes func() http.Handler

	known sync.Map // labels with code -> *handles
	lasts sync.Map // labels -> prometheus.Gauge
}

// labels distinguish requests.
type labels struct {
	verb, dryRun, group, version, resource, subresource, scope, component string
}

func (l labels) values(more ...string) []string {
	return append([]string{l.verb, l.dryRun, l.group, l.version, l.resource, l.subresource, l.scope, l.component}, more...)
}

// placed returns the values of all labels but dry_run.
func (l labels) placed() []string {
	return []string{l.verb, l.group, l.version, l.resource, l.subresource, l.scope, l.component}
}

type seen struct {
	labels
	code int
}

type handles struct {
	of    labels
	count prometheus.Counter
	took  prometheus.Observer
	sli   prometheus.Observer
	size  prometheus.Observer // nil for verbs whose answers are not measured
}

var requestLabels = []string{"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"}

// New makes the metrics.
func New(catalogue *kinds.Catalogue, clock func() time.Time) *Metrics {
	own := []string{"verb", "resource", "subresource"}
	if catalogue.Release().Has(release.MetricsByGroup) {
		own = []string{"verb", "group", "resource", "subresource"}
	}
	placed := []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}
	s := metricset.New("")
	m := &Metrics{
		Registry: prometheus.NewRegistry(), catalogue: catalogue, clock: clock, byGroup: catalogue.Release().Has(release.MetricsByGroup),
		watches: newWatches(s, catalogue.Release()), decisions: newDecisions(s), Delivery: newDelivery(s),
		slis: newHistograms(prometheus.HistogramOpts{
			Name:    "apiserver_request_sli_duration_seconds",
			Help:    "Time from the arrival of a request to the end of its answer, less what the server waited for others.",
			Buckets: []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
		}, placed),
		own:        s.Counters("apiserver_selfrequest_total", "Requests of this server to itself.", own...),
		aborts:     s.Counters("apiserver_request_aborts_total", "Requests whose answer was cut off.", placed[:6:6]...),
		terminated: s.Counters("apiserver_request_terminations_total", "Requests that the server ended to protect itself.", append(placed[:7:7], "code")...),
		deprecated: s.Gauges("apiserver_requested_deprecated_apis", "Deprecated APIs that were requested.", "group", "version", "resource", "subresource", "removed_release"),
		requests:   s.Counters("apiserver_request_total", "Requests by verb, dry run value, resource, scope, component and HTTP code.", append(requestLabels[:len(requestLabels):len(requestLabels)], "code")...),
		durations: newHistograms(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds",
			Help: "Time from the arrival of a request to the end of its answer; watches are left out.",
			Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3,
				4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
		}, requestLabels),
		sizes: newHistograms(prometheus.HistogramOpts{
			Name:    "apiserver_response_sizes",
			Help:    "Bytes of the answers to reads.",
			Buckets: prometheus.ExponentialBuckets(1000, 10, 7),
		}, placed),
		inFlight:    s.Gauges("apiserver_current_inflight_requests", "Most requests of a kind that ran at once since the last one began or ended.", "request_kind"),
		longRunning: s.Gauges("apiserver_longrunning_requests", "Watches and connections to pods, nodes and services that are open.", placed...),
		limited:     s.Counters("rowlock_requests_limited_total", "Requests refused with 429, by the limit that they met.", "limit"),
		refused:     s.Counters("apiserver_dropped_requests_total", "Requests refused with 429 because too many ran.", "request_kind"),
		unaccepted:  s.Counter("rowlock_accept_failures_total", "How often no connection could be accepted, as where file descriptors are used up."),
		handshakes:  s.Counter("apiserver_tls_handshake_errors_total", "TLS handshakes that failed."),
		panics:      s.Counter("apiserver_panics_total", "Requests that ended in a panic."),
	}
	m.ownership = newImplementations(s, "rowlock_apply_ownership_total",
		"Computations of the managed fields of an object, by implementation: planned; standard; or failed, if the planned one panicked and the standard one followed.",
		ownership.Planned, ownership.Standard, ownership.Failed)
	m.scrapes = sync.OnceValue(func() http.Handler { return scrape.Handler(m.Shown.Of(m.Registry)) })
	m.reading, m.writing = m.inFlight.WithLabelValues("readOnly"), m.inFlight.WithLabelValues("mutating")
	m.Registry.MustRegister(s, m.durations, m.sizes, m.slis, newMetricCounts(m),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newAnonymousMemory())
	return m
}

// ServeHTTP serves the metrics.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.dropGone(true)
	m.scrapes().ServeHTTP(w, r)
}

// HandshakeFailed counts a failed TLS handshake.
func (m *Metrics) HandshakeFailed() { m.handshakes.Inc() }

// AcceptFailed counts a connection that could not be accepted.
func (m *Metrics) AcceptFailed() { m.unaccepted.Inc() }

// Panicked counts a panic.
func (m *Metrics) Panicked() { m.panics.Inc() }

// InFlight notes how many requests that write, or read, run.
func (m *Metrics) InFlight(mutating bool, n int) {
	g := m.reading
	if mutating {
		g = m.writing
	}
	g.Set(float64(n))
}

// Limited counts a request that was refused by a limit.
func (m *Metrics) Limited(limit string) { m.limited.WithLabelValues(limit).Inc() }

// Refused counts a request that was one too many.
func (m *Metrics) Refused(mutating bool) {
	kind := "readOnly"
	if mutating {
		kind = "mutating"
	}
	m.refused.WithLabelValues(kind).Inc()
}

// Began counts a request that lasts, and returns its gauge; nil for another one.
func (m *Metrics) Began(r *http.Request) prometheus.Gauge {
	if !filters.LongRunning(request.From(r.Context()).Info) {
		return nil
	}
	lasting := m.lasting(r)
	lasting.Inc()
	return lasting
}

// Returned counts and measures a request whose handler has returned, or has that done at its end. lasting is the result of Began.
func (m *Metrics) Returned(w http.ResponseWriter, r *http.Request, lasting prometheus.Gauge) {
	scope := request.From(r.Context())
	rec, _ := w.(*filters.Recorder)
	code := http.StatusOK
	if rec != nil && rec.Code != 0 {
		code = rec.Code
	}
	h := m.handlesOf(seen{m.labelsOf(scope.Info, r), code})
	if scope.IsDetached() { // the request is not kept
		scope.AtEnd(func() { m.answered(rec, scope, h, lasting) })
		return
	}
	m.answered(rec, scope, h, lasting)
}

// answered counts a finished request.
func (m *Metrics) answered(rec *filters.Recorder, scope *request.Scope, h *handles, lasting prometheus.Gauge) {
	if lasting != nil {
		lasting.Dec()
	}
	l, bytes := &h.of, int64(0)
	if rec != nil {
		bytes = rec.Bytes
	}
	h.count.Inc()
	if !filters.LongRunning(scope.Info) {
		took := m.clock().Sub(scope.Received).Seconds()
		h.took.Observe(took)
		h.sli.Observe(took)
	}
	if h.size != nil {
		h.size.Observe(float64(bytes))
	}
	if scope.Aborted {
		m.aborts.WithLabelValues(l.placed()[:6]...).Inc()
	}
	if scope.Terminated != 0 {
		m.terminated.WithLabelValues(append(l.placed(), strconv.Itoa(scope.Terminated))...).Inc()
	}
	if scope.User != nil && scope.User.Name == self {
		values := []string{l.verb, l.group, l.resource, l.subresource}
		if !m.byGroup {
			values = []string{l.verb, l.resource, l.subresource}
		}
		m.own.WithLabelValues(values...).Inc()
	}
	if d := scope.Deprecated; d != nil {
		m.deprecated.WithLabelValues(l.group, l.version, l.resource, l.subresource, d.Removed).Set(1)
	}
}

// self is the identity of this server in its own requests.
const self = "system:apiserver"

// labelsOf returns the labels of a request. Unknown resources have no names; for resources of another server,
// the APIService determines the group version. The labels are no parts of the request's own texts: series would keep
// these, which may have a megabyte, in memory.
func (m *Metrics) labelsOf(i *request.Info, r *http.Request) labels {
	l := labels{component: "apiserver", verb: verbLabel(i, r.Method)}
	if i.Query.Get("dryRun") == "All" {
		l.dryRun = "All"
	}
	if i.Remote { // this server does not know its resources
		l.component, l.group, l.version = "aggregator", unique.Make(i.Group).Value(), unique.Make(i.Version).Value()
		return l
	}
	if !i.IsResource {
		return l
	}
	res := m.catalogue.Lookup(i.Group, i.Version, i.Resource)
	if res == nil || res.Off {
		return l
	}
	l.group, l.version, l.resource = res.Group, res.Version, res.Plural
	if sub := res.Sub(i.Subresource); sub != nil {
		l.subresource = sub.Name
	}
	l.scope = scopeOf(i)
	return l
}

// scopeOf returns the scope of a request: one object, a namespace or the cluster.
func scopeOf(i *request.Info) string {
	switch {
	case i.Name != "" && !i.NameFromSelector || i.Verb == "create":
		return "resource"
	case i.Namespace != "":
		return "namespace"
	}
	return "cluster"
}

// verbLabel returns the verb in the spelling of dashboards.
func verbLabel(i *request.Info, method string) string {
	switch i.Verb {
	case "list", "watch", "get", "proxy":
		return upper(i.Verb)
	case "deletecollection":
		return "DELETECOLLECTION"
	}
	if at := slices.Index(methods, method); at >= 0 {
		return methods[at]
	}
	return "other"
}

// methods are those that are counted by themselves.
var methods = []string{
	http.MethodPatch, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodConnect, http.MethodOptions,
}

func upper(verb string) string {
	switch verb {
	case "list":
		return "LIST"
	case "watch":
		return "WATCH"
	case "proxy":
		return "CONNECT"
	}
	return "GET"
}

func (m *Metrics) handlesOf(s seen) *handles {
	if h, ok := m.known.Load(s); ok {
		return h.(*handles)
	}
	m.dropGone(false)
	m.meet(s.group, s.version, s.resource)
	h := &handles{
		of:    s.labels,
		count: m.requests.WithLabelValues(s.values(strconv.Itoa(s.code))...),
		took:  m.durations.with(s.values()...),
		sli:   m.slis.with(s.placed()...),
	}
	if s.verb == "GET" || s.verb == "LIST" {
		h.size = m.sizes.with(s.verb, s.group, s.version, s.resource, s.subresource, s.labels.scope, s.component)
	}
	got, _ := m.known.LoadOrStore(s, h)
	return got.(*handles)
}

// lasting returns the gauge of a long-running request.
func (m *Metrics) lasting(r *http.Request) prometheus.Gauge {
	l := m.labelsOf(request.From(r.Context()).Info, r)
	if g, ok := m.lasts.Load(l); ok {
		return g.(prometheus.Gauge)
	}
	m.meet(l.group, l.version, l.resource)
	g := m.longRunning.WithLabelValues(l.verb, l.group, l.version, l.resource, l.subresource, l.scope, l.component)
	got, _ := m.lasts.LoadOrStore(l, g)
	return got.(prometheus.Gauge)
}
