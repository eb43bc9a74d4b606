// Package serve is the command that runs the API server: its flags become a server.Config. It also answers to the name
// and the command line of kube-apiserver.
package serve

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/backup"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/serve/auth"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/serve/compat"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/serve/listen"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/serve/telemetry"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/usage"
	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/release"
)

// options are the flags of serve, with the names that kube-apiserver has for them.
type options struct {
	dataDir, store                string
	initialize, inMemory          bool
	bindAddress, advertiseAddress string
	securePort                    int
	serving                       listen.Flags
	fairness                      listen.FairnessFlags
	elections                     electionOptions
	auth                          auth.AuthenticationFlags
	authz                         auth.AuthorizationFlags
	admission                     admissionOptions
	kubelet                       kubeletOptions
	database                      database.DriverFlags
	audit                         telemetry.AuditFlags
	metrics                       telemetry.MetricsFlags
	implementations               implementationOptions
	controllers                   controllerOptions
	encryption                    encryptionOptions
	aggregation                   aggregationOptions
	tracing                       telemetry.TracingFlags
	egress                        egressOptions
	backup                        backup.ServerFlags
	cacheFile                     cacheFileOptions
	serviceRange, nodePortRange   string
	retention                     retention
	retentionLowerNow             bool
	replaceKeys                   bool
	logRetention                  time.Duration
	cachePlainBytes               int64
	historyAPI                    bool
	eventTTL                      time.Duration
	allowPrivileged               bool
	externalHostname              string
	sharePort                     bool
	featureGates                  []string
	emulated, minCompatibility    []string
	runtimeConfig                 []string
	logFormat                     string
	verbosity                     int
	verbose                       *telemetry.Verbosity // of verbosity at the start
	flags                         *pflag.FlagSet       // with the values that were set

	// prepare completes the options before the server starts; nil: nothing to complete.
	prepare      func(context.Context, *network, *slog.Logger) error
	olderGates   bool          // gates can be switched that are locked in the newest release
	deletesApart time.Duration // called by the name of kube-apiserver
	ephemeral    bool          // keys and certificates are needed only until the machine stops
}

func Command() *cobra.Command { return newCommand(&options{}) }

// newCommand returns the command that sets options.
func newCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the API server",
		Long: `Run the API server until SIGINT or SIGTERM.

The first start creates a certificate authority, certificates, keys and a
kubeconfig in the data directory; later starts use them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := compat.CheckValues(cmd.Flags()); err != nil {
				return err
			}
			o.verbose = &telemetry.Verbosity{}
			o.verbose.Set(uint64(max(o.verbosity, 0)))
			log, err := telemetry.NewLog(cmd.ErrOrStderr(), o.logFormat, o.verbose)
			if err != nil {
				return err
			}
			compat.WarnIgnored(cmd.Flags(), log)
			compat.WarnRemoved(cmd.Flags(), log)
			o.flags = cmd.Flags()
			return o.run(cmd.Context(), cmd.OutOrStdout(), log)
		},
	}
	f, s := cmd.Flags(), &usage.Sections{}
	s.Put(maxUsed, MostUsedFlags...)
	s.Add("generic", f, o.addGeneric)
	s.Add("database", f, func(f *pflag.FlagSet) {
		o.addStore(f)
		o.database.AddTo(f)
		o.cacheFile.addTo(f)
		o.encryption.addTo(f)
	})
	s.Put("etcd", "etcd-servers", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "cert-dir") // called by the name of kube-apiserver
	s.Add("history", f, o.addHistory)
	s.Add("backup", f, o.backup.AddTo)
	s.Add("secure serving", f, o.serving.AddTo)
	s.Add("limits", f, func(f *pflag.FlagSet) {
		o.serving.AddLimits(f)
		o.fairness.AddTo(f)
	})
	s.Add("authentication", f, o.auth.AddTo)
	s.Add("authorization", f, o.authz.AddTo)
	s.Add("auditing", f, o.audit.AddTo)
	s.Add("API enablement", f, o.addEnablement)
	s.Add("admission", f, o.admission.addTo)
	s.Add("controllers", f, func(f *pflag.FlagSet) {
		o.controllers.addTo(f)
		o.elections.addTo(f)
	})
	s.Add("kubelet", f, o.kubelet.addTo)
	s.Add("aggregation", f, o.aggregation.addTo)
	s.Add("egress selector", f, o.egress.addTo)
	s.Add("metrics", f, o.metrics.AddTo)
	s.Add("traces", f, o.tracing.AddTo)
	s.Add("logs", f, func(f *pflag.FlagSet) {
		f.StringVar(&o.logFormat, "log-format", "text", "text or json")
		f.IntVarP(&o.verbosity, "v", "v", 0, "how much to log: 1 information, 4 every request")
	})
	s.Add("debugging", f, func(f *pflag.FlagSet) {
		o.serving.AddProfiling(f)
		o.implementations.addTo(f)
	})
	compat.AddIgnored(f)
	compat.AddRemoved(f)
	compat.AddOnlyFalse(f)
	f.SetNormalizeFunc(compat.OtherNames)
	s.Help(cmd, map[string]string{gatesFlag: "Gate=true|false pairs; \"rowlock help gates\" lists the gates"},
		"Feature gates: \"rowlock help gates\". Flags of kube-apiserver that have no effect here: docs/flags.md.")
	return cmd
}

// maxUsed is the help section of the most important flags.
const maxUsed = "most used"

var MostUsedFlags = []string{
	"data-dir", "store", "in-memory", "bind-address", "secure-port", "advertise-address", "service-cluster-ip-range", "tls-san",
	"history-retention", "backup-dir", database.EncryptionFlag, "authorization-mode", "audit-policy-file", "audit-log-path", "controllers",
}

func (o *options) addGeneric(f *pflag.FlagSet) {
	f.StringVar(&o.dataDir, "data-dir", program.DefaultDataDir, "folder of keys, certificates and the embedded database")
	f.StringVar(&o.bindAddress, "bind-address", "0.0.0.0", "address to listen on")
	f.IntVar(&o.securePort, "secure-port", 6443, "port to listen on")
	f.StringVar(&o.advertiseAddress, "advertise-address", "", "address at which the cluster reaches this server (default: the bind address, or that of the default interface)")
	f.StringVar(&o.serviceRange, "service-cluster-ip-range", "10.96.0.0/16", "addresses of services; one network, or one of IPv4 and one of IPv6")
	f.StringVar(&o.nodePortRange, "service-node-port-range", "30000-32767", "ports of services that nodes expose")
	f.DurationVar(&o.eventTTL, "event-ttl", time.Hour, "how long events are kept")
	f.BoolVar(&o.allowPrivileged, "allow-privileged", true, "let pods have privileged containers; false refuses them in every namespace, pod security admission in some")
	f.StringVar(&o.externalHostname, "external-hostname", "", "name under which clients reach this server, for addresses in its answers (default: the advertised address)")
	f.BoolVar(&o.sharePort, "permit-port-sharing", false, "let several processes listen on the port (SO_REUSEPORT)")
}

func (o *options) addStore(f *pflag.FlagSet) {
	f.StringVar(&o.store, "store", "", "database: sqlite:FILE, postgres://USER@HOST/DATABASE, or memory: for one that is lost when the server ends (default sqlite:<data-dir>/rowlock.db)")
	f.BoolVar(&o.inMemory, "in-memory", false, "store objects, and without --data-dir keys and certificates, only in memory. They are lost when the server ends")
	f.BoolVar(&o.initialize, "init", false, "start with an empty database if the SQLite file that was used with this data directory is missing")
	f.BoolVar(&o.replaceKeys, "replace-cluster-keys", false, "replace the cluster's keys in the PostgreSQL database by those of this data directory; certificates and tokens of the former keys are refused from then on")
	f.Int64Var(&o.cachePlainBytes, "cache-plain-bytes", 64<<20, "bytes of objects, and of their encoded forms, that are uncompressed in memory. Beyond that the server compresses objects that were not read recently, and decompresses them for each read (-1: it compresses none)")
}

func (o *options) addHistory(f *pflag.FlagSet) {
	o.retention.Default = 5 * time.Minute
	f.Var(&o.retention, "history-retention", "how long past versions of objects are kept: 5m, 7d, or by resource, where * is the rest (default 5m): leases=10m,events=1h,*=7d. Versions older than --history-log-retention are packed")
	f.BoolVar(&o.retentionLowerNow, "history-retention-lower-now", false, "apply a lowered --history-retention at once, and not after a day")
	f.DurationVar(&o.logRetention, "history-log-retention", 10*time.Minute, "how far back watches, and slow servers, can resume, at most --history-retention")
	f.BoolVar(&o.historyAPI, "history-api", true, "serve past versions of objects as the group history.rowlock.dev, to users that may get the objects")
}

func (o *options) addEnablement(f *pflag.FlagSet) {
	f.StringSliceVar(&o.featureGates, gatesFlag, nil, "Gate=true|false pairs. Gates are:\n"+strings.Join(gates.Help(release.Default), "\n"))
	f.StringSliceVar(&o.emulated, "emulated-version", nil, "Kubernetes release to behave as, as VERSION or kube=VERSION: one of "+release.Names()+" (default: "+release.Default.String()+")")
	f.StringSliceVar(&o.minCompatibility, "min-compatibility-version", nil, "oldest release that the other servers of the cluster may be, as VERSION or kube=VERSION: they must be able to read the objects that this server stores (default: the one before --emulated-version)")
	f.StringSliceVar(&o.runtimeConfig, "runtime-config", nil, "APIs to serve or not, KEY=true|false pairs; keys are GROUP/VERSION, GROUP/VERSION/RESOURCE, api/all, api/ga, api/beta, api/alpha")
}
