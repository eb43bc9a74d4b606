// Package compat accepts command lines that are written for kube-apiserver or an earlier release, and checks the values
// of flags.
package compat

import (
	"log/slog"

	"github.com/spf13/pflag"
)

// Why a flag that installers pass to kube-apiserver has no effect here.
const (
	NoEtcd     = "see --store"
	fromMemory = "reads are always served from memory"
	noPeers    = "all servers serve all versions"
	noKlog     = "see --log-format, -v"
)

// ignored lists flags of kube-apiserver that the server accepts without effect, so that its command lines work, with the
// reason for the log. It has no flag for a protection that this server lacks: those are unknown flags, and stop the
// start.
var ignored = []struct {
	name   string
	isBool bool
	why    string
}{
	{"etcd-servers", false, NoEtcd},
	{"etcd-servers-overrides", false, NoEtcd},
	{"etcd-prefix", false, NoEtcd},
	{"etcd-cafile", false, NoEtcd},
	{"etcd-certfile", false, NoEtcd},
	{"etcd-keyfile", false, NoEtcd},
	{"etcd-compaction-interval", false, "see --history-retention"},
	{"etcd-count-metric-poll-period", false, NoEtcd},
	{"etcd-db-metric-poll-interval", false, NoEtcd},
	{"etcd-healthcheck-timeout", false, NoEtcd},
	{"etcd-readycheck-timeout", false, NoEtcd},
	{"lease-reuse-duration-seconds", false, NoEtcd},
	{"storage-backend", false, NoEtcd},
	{"storage-media-type", false, "objects are stored as JSON"},
	{"storage-initialization-timeout", false, "readyz says when everything is loaded"},
	{"watch-cache", true, fromMemory},
	{"watch-cache-sizes", false, fromMemory},
	{"default-watch-cache-size", false, fromMemory},
	{"delete-collection-workers", false, "deletions are committed in groups"},
	{"enable-garbage-collector", true, "finalizers are always respected"},
	{"apiserver-count", false, "servers find one another in the database"},
	{"endpoint-reconciler-type", false, "servers find one another in the database"},
	{"cert-dir", false, "see --data-dir"},
	{"peer-advertise-ip", false, noPeers},
	{"peer-advertise-port", false, noPeers},
	{"peer-ca-file", false, noPeers},
	{"kubelet-port", false, "nodes announce their ports"},
	{"kubelet-read-only-port", false, "not used"},
	{"max-connection-bytes-per-sec", false, "unused in kube-apiserver, too"},
	{"kubernetes-service-node-port", false, "the kubernetes service has none"},
	{"cloud-provider", false, "unused in kube-apiserver, too"},
	{"cloud-config", false, "unused in kube-apiserver, too"},
	{"enable-logs-handler", true, "no log files are served"},
	{"permit-address-sharing", true, "addresses are always shared"},
	{"debug-socket-path", false, "see --profiling"},
	{"vmodule", false, noKlog},
	{"log-flush-frequency", false, noKlog},
	{"log-text-split-stream", true, noKlog},
	{"log-text-info-buffer-size", false, noKlog},
	{"log-json-split-stream", true, noKlog},
	{"log-json-info-buffer-size", false, noKlog},
}

// AddIgnored declares the flags without effect, hidden from help.
func AddIgnored(f *pflag.FlagSet) {
	for _, i := range ignored {
		if i.isBool {
			f.Bool(i.name, false, "no effect: "+i.why)
		} else {
			f.String(i.name, "", "no effect: "+i.why)
		}
		f.Lookup(i.name).Hidden = true
	}
}

// WarnIgnored logs which of the given flags have no effect.
func WarnIgnored(f *pflag.FlagSet, log *slog.Logger) {
	f.Visit(func(given *pflag.Flag) {
		for _, i := range ignored {
			if i.name == given.Name && given.Hidden { // else it means something here
				log.Warn("a flag has no effect", "flag", "--"+i.name, "reason", i.why)
			}
		}
	})
}
