package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/authx/remote"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/serve/auth"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/serve/telemetry"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/datadir"
	"github.com/rowlock/rowlock/server/egress"
	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/heap"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/kinds/history"
	"github.com/rowlock/rowlock/server/metrics"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/sqlstore"
)

func (o *options) run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if err := o.serving.Validate(); err != nil {
		return err
	}
	if err := o.backup.Validate(o.flags); err != nil {
		return err
	}
	chosen, err := release.Choose(o.emulated, o.minCompatibility)
	if err != nil {
		return err
	}
	if o.eventTTL <= 0 {
		return errors.New("--event-ttl must be longer than 0")
	}
	if err := o.useMemory(); err != nil {
		return err
	}
	n, err := o.network()
	if err != nil {
		return err
	}
	if o.prepare != nil {
		if err := o.prepare(ctx, n, log); err != nil {
			return err
		}
	}
	parse := gates.Parse
	if o.olderGates {
		parse = gates.ParseOlder
	}
	features, err := parse(chosen.Version, o.featureGates)
	if err != nil {
		return gatesError(chosen.Version, o.featureGates, err)
	}
	if err := setLibraryGates(chosen.Version, features); err != nil {
		return err
	}
	for _, remark := range features.Remarks() {
		log.Warn(remark)
	}
	shown, err := o.metrics.Build(chosen.Version)
	if err != nil {
		return err
	}
	elections, err := o.elections.build(features.Enabled)
	if err != nil {
		return err
	}
	resources, err := o.resources(chosen, n, features.Enabled, log)
	if err != nil {
		return err
	}
	admitted, err := o.admission.build(chosen.Version)
	if err != nil {
		return err
	}
	listening := net.ListenConfig{}
	if o.sharePort {
		listening.Control = sharePort
	}
	listener, err := listening.Listen(ctx, "tcp", net.JoinHostPort(o.bindAddress, strconv.Itoa(o.securePort)))
	if err != nil {
		return fmt.Errorf("--secure-port %d: %w", o.securePort, err)
	}
	defer listener.Close()
	if o.serving.Cert != "" { // for the kubeconfig in the data directory
		if _, err := flagfile.New("--tls-cert-file", o.serving.Cert).Read(); err != nil {
			return err
		}
	}
	names, ips := cli.SplitHosts(o.serving.Names)
	dir, err := o.openDataDir(datadir.Options{
		Hosts: names, IPs: append(ips, n.advertise, n.serviceIP, net.ParseIP(o.bindAddress)), ServerURL: "https://" + n.local, ServerCA: o.serving.Cert, Now: time.Now(), Quick: o.ephemeral, Serves: true,
	})
	if err != nil {
		return err
	}
	defer dir.Close()
	tlsConfig, err := o.serving.TLS(dir, log)
	if err != nil {
		return err
	}
	host := o.externalHostname
	if host == "" {
		host = n.advertise.String()
	}
	address := net.JoinHostPort(host, strconv.Itoa(o.securePort))
	o.retention.warnUnknown(resources, log)
	catalogue := kinds.NewCatalogue(resources)
	codec, err := o.implementations.codec(catalogue.Release(), log)
	if err != nil {
		return err
	}
	ways, err := o.egress.build(log)
	if err != nil {
		return err
	}
	control := ways.To(egress.ControlPlane)
	memory := server.NewCache(catalogue, codec, log)
	memory.BoundPlain(o.cachePlainBytes)
	authz, err := o.authz.Build(memory, chosen.Version, features.Enabled, program.ServerID(address), remote.Dial(control), log)
	if err != nil {
		return err
	}
	aggregation, front, err := o.aggregation.build(dir, log)
	if err != nil {
		return err
	}
	access, err := o.auth.Build(ctx, auth.Config{
		Dir: dir, Front: front, Address: address, Gate: features.Enabled, Release: chosen.Version, Log: log, AllowsAll: authz.AllowsAll, TLSKey: o.serving.Key, Dial: remote.Dial(control),
		Egress: func(network string) remote.Dial { return remote.Dial(ways.To(network)) },
	})
	if err != nil {
		return err
	}
	defer access.Close()
	built, err := o.controllers.build(dir, o.servingAuthority(dir), admitted)
	if err != nil {
		return err
	}
	auditing, err := o.audit.Build(out, chosen.Version, remote.Dial(control), log)
	if err != nil {
		return err
	}
	url, from := o.store, "--store"
	if url == "" {
		url, from = "sqlite:"+dir.Database, "--data-dir"
	}
	measured, measureDriver := telemetry.MeasureStore()
	cacheFile, err := o.cacheFile.build(url, dir.Path)
	if err != nil {
		return err
	}
	o.database.Reconnected, o.database.Log = measured.Reconnected, log
	file, isFile := database.SQLitePath(url)
	if isFile && !o.initialize {
		if err := dir.Expect(file); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
	}
	keys, err := o.encryption.build(ctx, features.Enabled, address, log)
	if err != nil {
		return err
	}
	if keys != nil {
		defer keys.Close()
	}
	tracer, err := o.tracing.Build(chosen.Version, features.Enabled, address, control, log)
	if err != nil {
		return err
	}
	defer telemetry.CloseTracer(tracer, log)
	driver, err := database.OpenWith(ctx, url, database.Migrate, o.database)
	if err != nil {
		return err
	}
	defer driver.Close()
	if isFile {
		if err := dir.Used(file); err != nil {
			return fmt.Errorf("--data-dir: %w", err)
		}
	}
	// An embedded database has one server at a time, and its keys may be new.
	if err := access.Keys.Agree(ctx, driver, dir.Path, isFile || o.replaceKeys, log); err != nil {
		return err
	}
	flagfile.WarnLoose(log, append(ownSecrets(dir), database.Files(from, url)...)...)
	measureDriver(driver)
	kubelet, err := o.kubelet.config(log)
	if err != nil {
		return err
	}
	built.Authentication, built.IssueForSecret, built.Elections = access.Published, access.IssueForSecret, elections
	if elections != nil {
		if elections.Identity, err = electionIdentity(address); err != nil {
			return err
		}
	}
	if o.joinsByToken(built.Runs) {
		built.JoinAt = "https://" + address
	}
	startup := heap.Start(ctx)
	cacheFile.Expect = startup.Expect
	cfg := server.Config{
		Tracer:    tracer,
		Egress:    server.Egress{Cluster: ways.To(egress.Cluster), ControlPlane: control},
		Store:     sqlstore.New(driver, sqlstore.Config{RetentionByResource: o.retention.Retention, LowerNow: o.retentionLowerNow, LogRetention: o.logRetention, Log: log, Observer: measured, Sealer: sealer(keys)}),
		Catalogue: catalogue, Cache: memory, CacheFile: cacheFile, Authenticate: access.Authenticate, DeletesApart: o.deletesApart,
		Admission: admitted, Aggregation: aggregation,
		Kubelet: &kubelet, Tokens: &access.Tokens, Routes: access.Routes,
		Loops: access.Loops, Controllers: built,
		Collectors:        append([]prometheus.Collector{measured, gatesCollector(features), newCertificateEnds(dir)}, access.Collectors...),
		Metrics:           shown,
		ClientAuthorities: access.Authorities,
		TLS:               tlsConfig, Listener: listener, Feature: features.Enabled, Release: chosen.Version, Version: chosen.Info(program.Build()), Address: address,
		Bootstrap: n.bootstrap(o.securePort), Log: log,
	}
	if chosen.Emulated() {
		cfg.Collectors = append(cfg.Collectors, metrics.Compatibility("kube", chosen.Patch(), chosen.String(), chosen.MinCompatibility.String()))
	}
	cfg.SetDefaults(n.services)
	// Servers of one database share their authority, so that none of them may replace it alone.
	cfg.Loops = append(cfg.Loops, renewalLoop(dir, isFile || database.IsInMemory(url), log), server.Loop{Name: "heap", Run: startup.Run})
	measured.Behind = cfg.Store.Behind
	if err := o.backup.Apply(&cfg, driver, log); err != nil {
		return err
	}
	if err := o.implementations.apply(&cfg); err != nil {
		return err
	}
	o.fairness.Apply(&cfg)
	if err := o.serving.Apply(&cfg); err != nil {
		return err
	}
	cfg.Paths = telemetry.ZPages(chosen, features.Enabled, o.flags, time.Now())
	if o.serving.Profiling {
		maps.Copy(cfg.Paths, telemetry.Profiles(o.verbose, log))
	}
	cfg.Started = func() { notify(log, notifyReady) }
	authz.AddTo(&cfg)
	auditing.AddTo(&cfg)
	addEncryption(keys, &cfg)
	cfg.Collectors = append(cfg.Collectors, ways.Collectors()...)
	s, err := server.New(cfg)
	if err != nil {
		return err
	}
	o.printBanner(out, chosen.Version, n, dir, url)
	if database.IsInMemory(url) {
		log.Warn("objects are kept in memory only, and are lost when the server ends", "keys and certificates", o.keysLocation(dir))
	}
	defer context.AfterFunc(ctx, func() { notify(log, notifyStopping) })() // stopping may take as long as requests do
	return s.Run(ctx)
}

// resources returns all resources, without the disabled ones.
func (o *options) resources(v release.Chosen, n *network, feature func(gate string) bool, log *slog.Logger) ([]*kinds.Resource, error) {
	all := builtin.Config{Release: v.Version, MinCompatibility: v.MinCompatibility, ServiceCIDRs: n.services, FirstNodePort: n.firstPort, LastNodePort: n.lastPort, EventTTL: o.eventTTL, Feature: feature, NoPrivileged: !o.allowPrivileged}.Resources()
	if o.historyAPI {
		all = append(all, history.Resources()...)
	}
	remarks, err := kinds.Enable(v.Version, all, kinds.ParseRuntimeConfig(o.runtimeConfig), o.fairness.On, feature)
	for _, remark := range remarks {
		log.Warn("--runtime-config: " + remark)
	}
	return all, enablementError(all, o.runtimeConfig, err)
}

// joinsByToken reports whether machines join with bootstrap tokens: the flag enables them, or a controller signs their
// configuration.
func (o *options) joinsByToken(runs func(controller string) bool) bool {
	asked := o.flags != nil && o.flags.Changed("enable-bootstrap-token-auth")
	return o.auth.Bootstrap && (asked || runs("bootstrapsigner"))
}
