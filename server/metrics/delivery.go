package metrics

import "github.com/prometheus/client_golang/prometheus"

// Delivery counts how what watches say is sent. It is a conns.DeliveryObserver.
type Delivery struct {
	direct    prometheus.Gauge
	watches   *prometheus.CounterVec
	fallbacks *prometheus.CounterVec
}

func newDelivery() *Delivery {
	return &Delivery{
		direct: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rowlock_watch_delivery_direct", Help: "1 if watches that begin are sent past the HTTP packages of Go, 0 if by them.",
		}),
		watches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rowlock_watch_delivery_watches_total", Help: "Watches that have begun, by protocol and by how they are sent.",
		}, []string{"protocol", "way"}),
		fallbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rowlock_watch_delivery_fallbacks_total", Help: "1 if the direct way of sending watches has failed and is not used any more.",
		}, []string{"reason"}),
	}
}

func (d *Delivery) parts() []prometheus.Collector {
	return []prometheus.Collector{d.direct, d.watches, d.fallbacks}
}

// DeliveryMode implements conns.DeliveryObserver.
func (d *Delivery) DeliveryMode(direct bool) {
	d.direct.Set(0)
	if direct {
		d.direct.Set(1)
	}
}

// Delivering implements conns.DeliveryObserver.
func (d *Delivery) Delivering(http2, direct bool) {
	protocol, way := "HTTP/1.1", "standard"
	if http2 {
		protocol = "HTTP/2"
	}
	if direct {
		way = "direct"
	}
	d.watches.WithLabelValues(protocol, way).Inc()
}

// FellBack implements conns.DeliveryObserver.
func (d *Delivery) FellBack(reason string) { d.fallbacks.WithLabelValues(reason).Inc() }
