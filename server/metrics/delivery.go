package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/metricset"
)

// Delivery counts how the events of watches are sent.
type Delivery struct{ watches *prometheus.CounterVec }

func newDelivery(s *metricset.Set) *Delivery {
	return &Delivery{s.Counters("rowlock_watch_delivery_watches_total", "Watches that have begun, by protocol, and by implementation: detached, without a handler; or handler.", "protocol", "implementation")}
}

// Sent is called for each watch that begins.
func (d *Delivery) Sent(http2, detached bool) {
	protocol, implementation := "HTTP/1.1", "handler"
	if http2 {
		protocol = "HTTP/2"
	}
	if detached {
		implementation = "detached"
	}
	d.watches.WithLabelValues(protocol, implementation).Inc()
}
