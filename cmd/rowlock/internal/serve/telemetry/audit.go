// Package telemetry declares the flags of audit events, logs, metrics and traces, and builds what they configure; it
// serves the pages about the process.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"gopkg.in/natefinch/lumberjack.v2"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rowlock/rowlock/authx/remote"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/audit"
	"github.com/rowlock/rowlock/server/ratelog"
	"github.com/rowlock/rowlock/server/release"
)

// AuditFlags are the flags of audit events.
type AuditFlags struct {
	policy                     string
	path, format               string
	maxAge, maxBackup, maxSize int
	compress                   bool
	webhook                    string
	backoff                    time.Duration
	log, hook                  auditMode
}

// auditMode is a mode in which events reach a backend.
type auditMode struct {
	mode          string
	buffer, size  int
	wait          time.Duration
	throttle      bool
	qps           float32
	burst         int
	version, name string
	truncate      bool
	maxBatch      int // bytes
	maxEvent      int
}

func (o *AuditFlags) AddTo(f *pflag.FlagSet) {
	f.StringVar(&o.policy, "audit-policy-file", "", "audit policy: which requests are recorded, and how (default: none)")
	f.StringVar(&o.path, "audit-log-path", "", "file for audit events; \"-\" is standard output")
	f.StringVar(&o.format, "audit-log-format", "json", "form of the audit log: json")
	f.IntVar(&o.maxAge, "audit-log-maxage", 0, "days that rotated audit logs are kept; 0: forever")
	f.IntVar(&o.maxBackup, "audit-log-maxbackup", 0, "rotated audit logs that are kept; 0 is all")
	f.IntVar(&o.maxSize, "audit-log-maxsize", 0, "megabytes at which the audit log is rotated, and that an event may have; 0 is 100")
	f.BoolVar(&o.compress, "audit-log-compress", false, "compress rotated audit logs with gzip")
	f.StringVar(&o.webhook, "audit-webhook-config-file", "", "kubeconfig of a server that receives audit events")
	f.DurationVar(&o.backoff, "audit-webhook-initial-backoff", 10*time.Second, "delay before the first retry of a failed request to the audit webhook")
	o.log = auditMode{name: "log", mode: "blocking", buffer: 10000, size: 1, maxBatch: 10 << 20, maxEvent: 100 << 10}
	o.hook = auditMode{name: "webhook", mode: "batch", buffer: 10000, size: 400, wait: 30 * time.Second, throttle: true, qps: 10, burst: 15, maxBatch: 10 << 20, maxEvent: 100 << 10}
	o.log.addTo(f)
	o.hook.addTo(f)
}

func (m *auditMode) addTo(f *pflag.FlagSet) {
	flag := "audit-" + m.name + "-"
	f.StringVar(&m.mode, flag+"mode", m.mode, "batch (buffered, never makes requests wait), blocking, or blocking-strict (requests that cannot be recorded are refused)")
	f.StringVar(&m.version, flag+"version", "audit.k8s.io/v1", "API version of the events")
	f.IntVar(&m.buffer, flag+"batch-buffer-size", m.buffer, "events that may wait to be sent in batch mode; further ones are dropped, and counted")
	f.IntVar(&m.size, flag+"batch-max-size", m.size, "most events of a batch")
	f.DurationVar(&m.wait, flag+"batch-max-wait", m.wait, "how long an event waits for others")
	f.BoolVar(&m.throttle, flag+"batch-throttle-enable", m.throttle, "limit how often batches are sent")
	f.Float32Var(&m.qps, flag+"batch-throttle-qps", m.qps, "batches a second")
	f.IntVar(&m.burst, flag+"batch-throttle-burst", m.burst, "batches at once after a quiet time")
	f.BoolVar(&m.truncate, flag+"truncate-enabled", m.truncate, "drop the bodies of events that are too large, and divide batches that are")
	f.IntVar(&m.maxBatch, flag+"truncate-max-batch-size", m.maxBatch, "most bytes of a batch, if truncating is enabled")
	f.IntVar(&m.maxEvent, flag+"truncate-max-event-size", m.maxEvent, "most bytes of an event, if truncating is enabled; one that is larger even without bodies gets shorter texts and lists")
}

func (m *auditMode) validate() error {
	flag := "--audit-" + m.name + "-"
	switch {
	case !slices.Contains([]string{"batch", "blocking", "blocking-strict"}, m.mode):
		return fmt.Errorf("invalid audit %s mode %s, allowed modes are %q", m.name, m.mode, "batch,blocking,blocking-strict")
	case m.version != "audit.k8s.io/v1":
		return fmt.Errorf("invalid audit %s version %s, allowed versions are %q", m.name, m.version, "audit.k8s.io/v1")
	case m.truncate && m.maxEvent <= 0:
		return fmt.Errorf("invalid audit truncate %s max event size %v, must be a positive number", m.name, m.maxEvent)
	case m.truncate && m.maxBatch < m.maxEvent:
		return fmt.Errorf("invalid audit truncate %s max batch size %v, must be greater than max event size (%v)", m.name, m.maxBatch, m.maxEvent)
	case m.mode != "batch":
		return nil
	case m.buffer <= 0:
		return fmt.Errorf("invalid audit batch %s buffer size %v, must be a positive number", m.name, m.buffer)
	case m.size <= 0:
		return fmt.Errorf("invalid audit batch %s max batch size %v, must be a positive number", m.name, m.size)
	case m.throttle && m.qps <= 0:
		return fmt.Errorf("%sbatch-throttle-qps %v: must be a positive number", flag, m.qps)
	case m.throttle && m.burst <= 0:
		return fmt.Errorf("%sbatch-throttle-burst %v: must be a positive number", flag, m.burst)
	}
	return nil
}

func (o *AuditFlags) validate() error {
	for flag, n := range map[string]int{"--audit-log-maxage": o.maxAge, "--audit-log-maxbackup": o.maxBackup, "--audit-log-maxsize": o.maxSize} {
		if n < 0 {
			return fmt.Errorf("%s %v can't be a negative number", flag, n)
		}
	}
	if o.format != "json" {
		return fmt.Errorf("invalid audit log format %s, allowed formats are %q", o.format, "json")
	}
	return errors.Join(o.log.validate(), o.hook.validate())
}

// Auditing holds the auditor that the flags configure, nil if nothing is recorded, and the loops of its backends.
type Auditing struct {
	auditor *audit.Auditor
	loops   []server.Loop
}

func (o *AuditFlags) Build(out io.Writer, v release.Version, dial remote.Dial, log *slog.Logger) (*Auditing, error) {
	a := &Auditing{}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.policy == "" {
		for _, backend := range []flagfile.File{flagfile.New("--audit-log-path", o.path), flagfile.New("--audit-webhook-config-file", o.webhook)} {
			if backend.Path != "" {
				log.Warn("no request is recorded: that needs --audit-policy-file too", "flag", backend.Flag, "file", backend.Path)
			}
		}
		return a, nil
	}
	policy, err := audit.Load(o.policy, v.Has(release.AuditAllGroups))
	if err != nil {
		return nil, flagfile.New("--audit-policy-file", o.policy).Wrap(err)
	}
	for _, remark := range policy.Remarks {
		log.Warn("the audit policy has a field that is not known and does not count: "+remark, "flag", "--audit-policy-file", "file", o.policy)
	}
	if o.path == "" && o.webhook == "" {
		log.Warn("no request is recorded: that needs --audit-log-path or --audit-webhook-config-file too", "flag", "--audit-policy-file", "file", o.policy)
		return a, nil
	}
	a.auditor = &audit.Auditor{Policy: policy, Metrics: audit.NewMetrics(), Clock: time.Now}
	if o.path != "" {
		w, err := o.file(out)
		if err != nil {
			return nil, err
		}
		a.add(&o.log, &audit.Lines{W: w}, o.longest(), log)
	}
	if o.webhook != "" {
		flagfile.WarnLoose(log, flagfile.New("--audit-webhook-config-file", o.webhook))
		hook, err := o.sender(dial)
		if err != nil {
			return nil, fmt.Errorf("initializing audit webhook: %w", flagfile.New("--audit-webhook-config-file", o.webhook).Wrap(err))
		}
		a.add(&o.hook, hook, 0, log)
	}
	return a, nil
}

// file opens the log at the start, so that a path that cannot be written stops it.
func (o *AuditFlags) file(out io.Writer) (io.Writer, error) {
	if o.path == "-" {
		return out, nil
	}
	if err := os.MkdirAll(filepath.Dir(o.path), 0o700); err != nil {
		return nil, flagfile.New("--audit-log-path", o.path).Wrap(err)
	}
	f, err := os.OpenFile(o.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, flagfile.New("--audit-log-path", o.path).Wrap(err)
	}
	if err := f.Close(); err != nil {
		return nil, flagfile.New("--audit-log-path", o.path).Wrap(err)
	}
	return &lumberjack.Logger{Filename: o.path, MaxAge: o.maxAge, MaxBackups: o.maxBackup, MaxSize: o.maxSize, Compress: o.compress}, nil
}

// defaultMaxSize is the size in megabytes at which a log is rotated without --audit-log-maxsize.
const defaultMaxSize = 100

// longest returns the bytes of the longest event that the log takes: a file takes no line that is longer than the size at which it is
// rotated. 0: any.
func (o *AuditFlags) longest() int {
	if o.path == "-" {
		return 0
	}
	return cmp.Or(o.maxSize, defaultMaxSize)<<20 - len("\n")
}

func (o *AuditFlags) sender(dial remote.Dial) (*audit.Webhook, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", o.webhook)
	if err != nil {
		return nil, err
	}
	cfg.Timeout = 30 * time.Second
	client, err := remote.Client(cfg, dial)
	if err != nil {
		return nil, err
	}
	url := cfg.Host
	if !strings.Contains(url, "://") {
		url = "https://" + url
	}
	return &audit.Webhook{URL: url, Client: client, Backoff: o.backoff}, nil
}

// add adds a backend in its mode. longest bounds the bytes of an event that it takes; 0: any.
func (a *Auditing) add(m *auditMode, to audit.Sender, longest int, log *slog.Logger) {
	metrics := a.auditor.Metrics
	var line ratelog.Line // each request can cause one
	lost := func(err error) {
		line.Log(context.Background(), log, slog.LevelError, "audit events are lost", "backend", m.name, "error", err)
	}
	var sink audit.Sink = &audit.Blocking{Sender: to, Metrics: metrics, Strict: m.mode == "blocking-strict", Report: lost}
	if m.mode == "batch" {
		b := &audit.Batch{Sender: to, Metrics: metrics, MaxSize: m.size, MaxWait: m.wait, Report: lost}
		if m.truncate {
			b.MaxBytes = m.maxBatch
		}
		if m.throttle {
			b.Throttle = &audit.Throttle{Rate: float64(m.qps), Burst: m.burst}
		}
		b.Start(m.buffer)
		a.loops = append(a.loops, server.Loop{Name: "audit " + m.name, Run: b.Run})
		sink = b
	}
	if m.truncate && (longest == 0 || m.maxEvent < longest) {
		longest = m.maxEvent
	}
	if longest > 0 {
		sink = &audit.Truncate{Sink: sink, Metrics: metrics, MaxEvent: longest, Report: lost}
	}
	a.auditor.Sinks = append(a.auditor.Sinks, sink)
}

// AddTo adds the auditor to a server's configuration.
func (a *Auditing) AddTo(cfg *server.Config) {
	if a.auditor == nil {
		return
	}
	cfg.Audit = a.auditor
	cfg.Collectors = append(cfg.Collectors, a.auditor.Metrics.Collectors()...)
	cfg.Loops = append(cfg.Loops, a.loops...)
}
