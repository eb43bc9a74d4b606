package metrics

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs/metricset"
	"github.com/rowlock/rowlock/server/admission"
)

// decisions measures authentication, authorization and admission. It is admission.Observer.
type decisions struct {
	attempts, asked      *prometheus.CounterVec
	attemptTime, askTime *prometheus.HistogramVec
	users                *prometheus.CounterVec
	certificateTime      prometheus.Histogram
	steps, plugins       *prometheus.HistogramVec
	sorts                sync.Map // sort of user -> prometheus.Counter

	succeeded, failed, erred            outcome
	allowed, denied, undecided, unclear outcome
}

func newDecisions(s *metricset.Set) *decisions {
	admissionTimes := []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5}
	accessTimes := prometheus.ExponentialBuckets(0.001, 2, 15)
	d := &decisions{
		attempts:        s.Counters("authentication_attempts", "Attempts to authenticate requests, by result: success, failure, error.", "result"),
		attemptTime:     s.Histograms("authentication_duration_seconds", "Time that authentication took.", accessTimes, "result"),
		users:           s.Counters("authenticated_user_requests", "Authenticated requests by sort of user.", "username"),
		certificateTime: s.Histogram("apiserver_client_certificate_expiration_seconds", "Remaining lifetime of the certificates that authenticated requests.", certificateTimes()),
		asked:           s.Counters("apiserver_authorization_attempts_total", "Authorization decisions: allowed, denied, no-opinion, error.", "result"),
		askTime:         s.Histograms("apiserver_authorization_duration_seconds", "Time of authorization.", accessTimes, "result"),
		steps:           s.Histograms("apiserver_admission_step_admission_duration_seconds", "Time of all admission plugins together, by step.", admissionTimes, "type", "operation", "rejected"),
		plugins:         s.Histograms("apiserver_admission_controller_admission_duration_seconds", "Time of an admission plugin.", admissionTimes, "name", "type", "operation", "rejected"),
	}
	attempt := func(result string) outcome {
		return outcome{d.attempts.WithLabelValues(result), d.attemptTime.WithLabelValues(result)}
	}
	d.succeeded, d.failed, d.erred = attempt("success"), attempt("failure"), attempt("error")
	decision := func(result string) outcome {
		return outcome{d.asked.WithLabelValues(result), d.askTime.WithLabelValues(result)}
	}
	d.allowed, d.denied, d.undecided, d.unclear = decision("allowed"), decision("denied"), decision("no-opinion"), decision("error")
	return d
}

// certificateTimes returns the lifetimes by which alerts about client certificates go: half an hour to a year.
func certificateTimes() []float64 {
	const hour, day, month = 3600, 24 * 3600, 30 * 24 * 3600
	return []float64{0, hour / 2, hour, 2 * hour, 6 * hour, 12 * hour, day, 2 * day, 4 * day, 7 * day, month, 3 * month, 6 * month, 12 * month}
}

// Authenticated counts and measures an authentication.
func (m *Metrics) Authenticated(who *authx.Authenticated, mine bool, err error, took time.Duration) {
	d := m.decisions
	result := &d.failed
	switch {
	case err != nil:
		result = &d.erred
	case mine && who.HasName():
		result = &d.succeeded
		d.user(compress(who.Identity.Name)).Inc()
		if ends := who.CertificateEnds; !ends.IsZero() {
			d.certificateTime.Observe(ends.Sub(m.clock()).Seconds())
		}
	}
	result.Observe(took)
}

// Authorized counts and measures an authorization.
func (m *Metrics) Authorized(decision authx.Decision, err error, took time.Duration) {
	result := &m.decisions.undecided
	switch {
	case decision == authx.Allow:
		result = &m.decisions.allowed
	case err != nil:
		result = &m.decisions.unclear
	case decision == authx.Deny:
		result = &m.decisions.denied
	}
	result.Observe(took)
}

// outcome is one result of a decision: how often, and how long it took.
type outcome struct {
	count prometheus.Counter
	took  prometheus.Observer
}

// Observe takes one more.
func (o *outcome) Observe(took time.Duration) {
	o.count.Inc()
	o.took.Observe(took.Seconds())
}

// user returns the counter of a sort of user, of which there are few.
func (d *decisions) user(sort string) prometheus.Counter {
	if c, ok := d.sorts.Load(sort); ok {
		return c.(prometheus.Counter)
	}
	c := d.users.WithLabelValues(sort)
	d.sorts.Store(sort, c)
	return c
}

// compress keeps the names of people out of labels, and their number small.
func compress(user string) string {
	switch user {
	case "admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default":
		return user
	}
	if strings.Contains(user, "@") {
		return "email_id"
	}
	return "other"
}

// Plugin implements admission.Observer.
func (m *Metrics) Plugin(name, phase string, op admission.Operation, rejected bool) admission.Timer {
	return m.decisions.plugins.WithLabelValues(name, phase, string(op), strconv.FormatBool(rejected))
}

// Step implements admission.Observer.
func (m *Metrics) Step(phase string, op admission.Operation, rejected bool) admission.Timer {
	return m.decisions.steps.WithLabelValues(phase, string(op), strconv.FormatBool(rejected))
}
