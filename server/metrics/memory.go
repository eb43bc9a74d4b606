package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

// anonymousMemory reports the memory that the process itself has filled. The resident set of the standard
// collector includes pages of the program's file, which the kernel maps and drops at will and which other
// processes share, so it does not show a server's needs.
type anonymousMemory struct{ desc *prometheus.Desc }

func newAnonymousMemory() anonymousMemory {
	return anonymousMemory{prometheus.NewDesc("rowlock_process_anonymous_memory_bytes", "Resident memory of the process without pages of files, in bytes. Linux only.", nil, nil)}
}

// Describe implements prometheus.Collector.
func (a anonymousMemory) Describe(ch chan<- *prometheus.Desc) { ch <- a.desc }

// Collect implements prometheus.Collector. Where there is no /proc it collects nothing.
func (a anonymousMemory) Collect(ch chan<- prometheus.Metric) {
	self, err := procfs.Self()
	if err != nil {
		return
	}
	status, err := self.NewStatus()
	if err != nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(a.desc, prometheus.GaugeValue, float64(status.RssAnon))
}
