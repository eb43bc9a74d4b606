package etcdstub

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"
)

// Other flags of etcd have no meaning here: there is one process and no log of changes, and the database
// limits itself.
var (
	noEffect = strings.Fields(`auth-token auth-token-ttl auto-compaction-mode auto-compaction-retention
		backend-batch-interval backend-batch-limit backend-bbolt-freelist-type bcrypt-cost cipher-suites client-cert-allowed-hostname
		client-cert-file client-crl-file client-key-file cors discovery discovery-fallback discovery-proxy discovery-srv
		discovery-srv-name election-timeout experimental-bootstrap-defrag-threshold-megabytes experimental-compact-hash-check-time
		experimental-compaction-batch-limit experimental-compaction-sleep-interval experimental-corrupt-check-time
		experimental-distributed-tracing-address experimental-distributed-tracing-instance-id
		experimental-distributed-tracing-sampling-rate experimental-distributed-tracing-service-name
		experimental-downgrade-check-time experimental-enable-v2v3 experimental-warning-apply-duration
		experimental-warning-unary-request-duration experimental-watch-progress-notify-interval experimental-max-learners
		experimental-snapshot-catchup-entries grpc-keepalive-interval
		grpc-keepalive-min-time grpc-keepalive-timeout heartbeat-interval host-whitelist initial-advertise-peer-urls
		initial-cluster initial-cluster-state initial-cluster-token listen-client-http-urls listen-peer-urls log-level
		log-outputs log-rotation-config-json logger max-concurrent-streams max-request-bytes max-snapshots max-txn-ops max-wals
		metrics name peer-cert-allowed-cn peer-cert-allowed-hostname peer-cert-file peer-client-cert-file peer-client-key-file
		peer-crl-file peer-key-file peer-trusted-ca-file proxy proxy-dial-timeout proxy-failure-wait proxy-read-timeout
		proxy-refresh-interval proxy-write-timeout quota-backend-bytes raft-read-timeout raft-write-timeout
		self-signed-cert-validity snapshot-count tls-max-version tls-min-version v2-deprecation wal-dir`)
	noEffectSwitches = strings.Fields(`auto-tls enable-grpc-gateway enable-log-rotation enable-pprof enable-v2
		experimental-compact-hash-check-enabled experimental-enable-distributed-tracing experimental-enable-lease-checkpoint
		experimental-enable-lease-checkpoint-persist experimental-initial-corrupt-check experimental-memory-mlock
		experimental-peer-skip-client-san-verification experimental-stop-grpc-service-on-defrag
		experimental-txn-mode-write-with-shared-buffer force-new-cluster initial-election-tick-advance peer-auto-tls
		peer-client-cert-auth pre-vote socket-reuse-address socket-reuse-port strict-reconfig-check`)
)

// options are the flags that mean something.
type options struct {
	dir, clients, names, metrics string
	tls                          TLS
	clientCertAuth               bool
	unsynced, version            bool
	configFile                   string
}

func (o *options) flags() *flag.FlagSet {
	f := flag.NewFlagSet("etcd", flag.ContinueOnError)
	f.StringVar(&o.dir, "data-dir", "", "`folder` of the database (default: a temporary one, removed at the end)")
	f.StringVar(&o.clients, "listen-client-urls", "http://localhost:2379", "`URLs` to listen on, separated by commas")
	f.StringVar(&o.names, "advertise-client-urls", "", "`URLs` by whose hosts clients call it, besides addresses, localhost and the name of the machine")
	f.StringVar(&o.metrics, "listen-metrics-urls", "", "more `URLs`, for health checks alone")
	f.StringVar(&o.tls.CertFile, "cert-file", "", "certificate of https, a PEM `file`")
	f.StringVar(&o.tls.KeyFile, "key-file", "", "its key, a PEM `file`")
	f.StringVar(&o.tls.CAFile, "trusted-ca-file", "", "authorities of clients' certificates, a PEM `file`")
	f.BoolVar(&o.clientCertAuth, "client-cert-auth", false, "let in only clients with a certificate of --trusted-ca-file")
	f.BoolVar(&o.unsynced, "unsafe-no-fsync", false, "leave it to the system when data is written to the disk: quick, and lost with the machine")
	f.BoolVar(&o.version, "version", false, "print versions")
	f.StringVar(&o.configFile, "config-file", "", "not supported: give flags")
	for _, name := range noEffect {
		f.String(name, "", "")
	}
	for _, name := range noEffectSwitches {
		f.Bool(name, false, "")
	}
	f.Usage = func() {}
	return f
}

// Main returns the program: etcd's command line, without the program's name. It returns the
// exit code once ctx has ended or something failed.
func Main(ctx context.Context, args []string, getenv func(string) string, version string, out, log io.Writer) int {
	o := &options{}
	f := o.flags()
	f.SetOutput(log)
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		usage(out, f)
		return 0
	case err != nil:
		fmt.Fprintln(log, "etcd --help shows the flags")
		return 2
	case f.NArg() > 0:
		fmt.Fprintf(log, "etcd: %q is not a valid flag\n", f.Arg(0))
		return 1
	}
	if o.version {
		fmt.Fprintf(out, "etcd Version: %s\nGit SHA: rowlock-%s\nGo Version: %s\nGo OS/Arch: %s/%s\n", etcdRelease, version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return 0
	}
	err := o.run(ctx, f, getenv, log)
	if err != nil {
		fmt.Fprintln(log, "etcd:", strings.ReplaceAll(err.Error(), "\n", "; "))
		return 1
	}
	return 0
}

func (o *options) run(ctx context.Context, f *flag.FlagSet, getenv func(string) string, log io.Writer) error {
	if err := fromEnvironment(f, getenv); err != nil {
		return err
	}
	if o.configFile != "" {
		return errors.New("--config-file: configuration files are not supported, give flags")
	}
	if o.clientCertAuth && o.tls.CAFile == "" {
		return errors.New("--client-cert-auth needs --trusted-ca-file")
	}
	if !o.clientCertAuth { // as etcd does: authorities are for servers then
		o.tls.CAFile = ""
	}
	s, err := New(Config{
		Dir: o.dir, Clients: urls(o.clients), Names: urls(o.names), Metrics: urls(o.metrics), TLS: o.tls, Unsynced: o.unsynced, Log: log,
	})
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Run(ctx)
}

// fromEnvironment sets flags that were not given by variables: ETCD_DATA_DIR for data-dir.
func fromEnvironment(f *flag.FlagSet, getenv func(string) string) error {
	given := map[string]bool{}
	f.Visit(func(g *flag.Flag) { given[g.Name] = true })
	var errs []error
	f.VisitAll(func(g *flag.Flag) {
		name := "ETCD_" + strings.ToUpper(strings.ReplaceAll(g.Name, "-", "_"))
		value := getenv(name)
		if value == "" || given[g.Name] || g.Name == "version" {
			return
		}
		if err := f.Set(g.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%s: %w", name, value, err))
		}
	})
	return errors.Join(errs...)
}

func urls(text string) (list []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// usage shows the flags that mean something, and names the others.
func usage(out io.Writer, f *flag.FlagSet) {
	fmt.Fprint(out, "Usage:\n\n  etcd [flags]\n    Keep the database of rowlock's API servers, which find it by this address in --etcd-servers.\n\nFlags:\n")
	var silent []string
	f.VisitAll(func(g *flag.Flag) {
		what, text := flag.UnquoteUsage(g)
		if text == "" {
			silent = append(silent, "--"+g.Name)
			return
		}
		fmt.Fprintf(out, "  --%s %s\n    %s.\n", g.Name, what, text)
	})
	fmt.Fprintf(out, "\nTaken, without effect:\n  %s\n", strings.Join(silent, " "))
}
