package request

import (
	"sync/atomic"
	"time"
)

// Phase is a part of the work for a request whose duration the audit event shows.
type Phase uint8

// The phases.
const (
	Authentication Phase = iota
	Impersonation
	Queue // the wait for a seat
	Authorization
	MutatingWebhooks
	ValidatingWebhooks
	Commit
	numPhases
)

// latency is the prefix of the annotations with durations.
const latency = "apiserver.latency.k8s.io/"

// phaseNames complete the annotations.
var phaseNames = [numPhases]string{"authentication", "impersonation", "apf-queue-wait", "authorization", "mutating-webhook", "validating-webhook", "etcd"}

// slow is the duration above which the audit event of a request shows where the time went, as on a stock server.
const slow = 500 * time.Millisecond

// phases are the durations of the phases of a request, some of which may run in several goroutines.
type phases [numPhases]atomic.Int64

// Took adds the time since a phase began. It does nothing if the request is not audited.
func (s *Scope) Took(p Phase, began time.Time) {
	if s.Audit != nil {
		s.phases[p].Add(int64(time.Since(began)))
	}
}

// AnnotateLatency adds the durations of the phases of a slow request, and of all of it, to the audit event. total is how long the
// request took.
func (s *Scope) AnnotateLatency(total time.Duration) {
	if total <= slow {
		return
	}
	for p, name := range phaseNames {
		if took := s.phases[p].Load(); took > 0 {
			s.Annotate(latency+name, time.Duration(took).String())
		}
	}
	s.Annotate(latency+"total", total.String())
}
