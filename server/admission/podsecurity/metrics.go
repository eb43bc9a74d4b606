package podsecurity

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/pod-security-admission/api"

	"github.com/rowlock/rowlock/codecs/metricset"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/release"
)

// Metrics count the decisions on pods, exempt requests, and errors. Their labels have few values, whatever the labels of
// namespaces say.
type Metrics struct {
	*metricset.Set
	newest                          api.Version // of the standards that the server knows
	evaluations, exemptions, errors *prometheus.CounterVec
}

// NewMetrics returns metrics with the names of a stock server of a release.
func NewMetrics(v release.Version) *Metrics {
	s, request := metricset.New("pod_security_"), []string{"request_operation", "resource", "subresource"}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return s.Counters(name, help, append(labels, request...)...)
	}
	m := &Metrics{
		Set:         s,
		newest:      api.MajorMinorVersion(v.Major(), v.Minor()),
		evaluations: counter("evaluations_total", "Evaluations of pods and pod templates against a standard.", "decision", "policy_level", "policy_version", "mode"),
		exemptions:  counter("exemptions_total", "Requests that are exempt from pod security standards."),
		errors:      counter("errors_total", "Errors that kept requests from being evaluated or, if they are not fatal, had them evaluated against another standard.", "fatal"),
	}
	// The usual series begin with zero, so that rates count the first request, too.
	for _, operation := range []string{"create", "update"} {
		m.evaluations.WithLabelValues("allow", string(api.LevelPrivileged), "latest", enforce, operation, "pod", "")
		m.exemptions.WithLabelValues(operation, "pod", "")
		m.exemptions.WithLabelValues(operation, "controller", "")
	}
	return m
}

// Modes of a standard.
const (
	enforce = "enforce"
	audit   = "audit"
	warn    = "warn"
)

func (m *Metrics) evaluated(a *admission.Attributes, mode string, standard api.LevelVersion, allowed bool) {
	if m == nil {
		return
	}
	decision, version := "deny", standard.Version.String()
	if allowed {
		decision = "allow"
	}
	switch {
	case standard.Level == api.LevelPrivileged: // which is the same in all versions
		version = "latest"
	case m.newest.Older(standard.Version) && !standard.Version.Latest():
		version = "future"
	}
	m.evaluations.WithLabelValues(of(a, decision, string(standard.Level), version, mode)...).Inc()
}

func (m *Metrics) exempted(a *admission.Attributes) {
	if m != nil {
		m.exemptions.WithLabelValues(of(a)...).Inc()
	}
}

func (m *Metrics) failed(a *admission.Attributes, fatal bool) {
	if m != nil {
		m.errors.WithLabelValues(of(a, strconv.FormatBool(fatal))...).Inc()
	}
}

// of returns the values of labels: the given ones, and those that describe the request.
func of(a *admission.Attributes, values ...string) []string {
	resource := "controller"
	if a.Is("", "pods", a.Subresource) {
		resource = "pod"
	}
	return append(values, strings.ToLower(string(a.Operation)), resource, a.Subresource)
}
