package main

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/authx"
)

// attempts counts and measures authentication, under the names of a stock server.
type attempts struct {
	next authx.Authenticator

	users *prometheus.CounterVec
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

func newAttempts(next authx.Authenticator) *attempts {
	return &attempts{
		next: next,
		users: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authenticated_user_requests", Help: "Authenticated requests by sort of user.",
		}, []string{"username"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authentication_attempts", Help: "Attempts to authenticate, by outcome.",
		}, []string{"result"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "authentication_duration_seconds", Help: "How long authentication takes, by outcome.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"result"}),
	}
}

func (a *attempts) collectors() []prometheus.Collector {
	return []prometheus.Collector{a.users, a.total, a.took}
}

// Authenticate implements authx.Authenticator.
func (a *attempts) Authenticate(r *http.Request) (*authx.Authenticated, bool, error) {
	start := time.Now()
	who, mine, err := a.next.Authenticate(r)
	result := "success"
	switch {
	case err != nil:
		result = "error"
	case !mine:
		result = "failure"
	default:
		a.users.WithLabelValues(sortOf(who.Identity.Name)).Inc()
	}
	a.total.WithLabelValues(result).Inc()
	a.took.WithLabelValues(result).Observe(time.Since(start).Seconds())
	return who, mine, err
}

// sortOf keeps the names of people out of metrics, and their number small.
func sortOf(user string) string {
	switch user {
	case "admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default":
		return user
	}
	if strings.Contains(user, "@") {
		return "email_id"
	}
	return "other"
}
