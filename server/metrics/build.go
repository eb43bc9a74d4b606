package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/version"
)

// Build reports the version of this server.
func Build(v version.Info) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kubernetes_build_info", Help: "What this server is; always 1.",
		ConstLabels: prometheus.Labels{
			"major": v.Major, "minor": v.Minor, "git_version": v.GitVersion, "git_commit": v.GitCommit, "git_tree_state": v.GitTreeState,
			"build_date": v.BuildDate, "go_version": v.GoVersion, "compiler": v.Compiler, "platform": v.Platform,
		},
	})
	g.Set(1)
	return g
}

// Compatibility shows the release of a server's binary, the release that it emulates, and the oldest that it is
// compatible with.
func Compatibility(component, binary, emulation, minCompatibility string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "version_info", Help: "The release that this server behaves as, and the oldest that it is compatible with; always 1.",
		ConstLabels: prometheus.Labels{"component": component, "binary": binary, "emulation": emulation, "min_compat": minCompatibility},
	})
	g.Set(1)
	return g
}

// Features shows which feature gates are on. each calls its argument for every gate.
func Features(each func(show func(name, stage string, on bool))) prometheus.Collector {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kubernetes_feature_enabled", Help: "Whether a feature gate is on.",
	}, []string{"name", "stage"})
	each(func(name, stage string, on bool) {
		value := 0.0
		if on {
			value = 1
		}
		if stage == "GA" {
			stage = ""
		}
		g.WithLabelValues(name, stage).Set(value)
	})
	return g
}
