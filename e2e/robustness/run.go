//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/faults"
	"github.com/rowlock/rowlock/e2e/robustness/heartbeat"
	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
	"github.com/rowlock/rowlock/e2e/robustness/report"
	"github.com/rowlock/rowlock/e2e/robustness/traffic"
)

// patience bounds how long clients and servers may take to come to rest after the faults.
const patience = 90 * time.Second

// run executes the run that the flags describe, and returns the number of violations.
func (s *settings) run(ctx context.Context, out io.Writer) (violations int, err error) {
	if s.faults == "help" {
		_, err := io.WriteString(out, faults.Help())
		return 0, err
	}
	if s.judge != "" {
		return s.again(out)
	}
	if s.minutes <= 0 || s.round <= 0 {
		return 0, fmt.Errorf("-minutes %g -round %s: want more than nothing", s.minutes, s.round)
	}
	if s.servers == 0 {
		if s.servers = 1; s.store == "postgres" {
			s.servers = 3
		}
	}
	if s.seed == 0 {
		s.seed = rand.Uint64N(1_000_000_000)
	}
	chosen, err := faults.Choose(s.faults, s.store)
	if err != nil {
		return 0, err
	}
	releases, err := newCalendar(s.release, s.seed)
	if err != nil {
		return 0, fmt.Errorf("-release: %w", err)
	}
	first := releases.next()
	if s.out == "" {
		if s.out, err = os.MkdirTemp("", "robustness-"); err != nil {
			return 0, err
		}
	} else if err := os.MkdirAll(s.out, 0o755); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "robustness-data-")
	if err != nil {
		return 0, err
	}
	if !s.keep {
		defer os.RemoveAll(dir)
	}
	fmt.Fprintf(out, "seed %d: %d servers on %s, release %s first, faults %s, %.1f minutes\n", s.seed, s.servers, s.store, first, s.faults, s.minutes)
	o := cluster.Options{Store: s.store, Servers: s.servers, Binary: s.binary, Other: s.other, Dir: dir, Args: slices.Concat(serveArgs, networkArgs), More: releaseArgs(first), Files: traffic.ServerFiles}
	if faults.NeedDisk(chosen) {
		program, err := os.Executable()
		if err != nil {
			return 0, err
		}
		o.Disk = []string{program, serveDisk}
	}
	note := ""
	c, err := cluster.Start(ctx, o)
	if err != nil && o.Disk != nil && s.faults == "all" {
		note = "Without faults of the disk: " + err.Error()
		fmt.Fprintln(out, note)
		chosen, o.Disk = faults.WithoutDisk(chosen), nil
		c, err = cluster.Start(ctx, o)
	}
	if err != nil {
		return 0, err
	}
	defer c.Close()
	r := &run{settings: s, out: out, c: c, rec: history.NewRecorder(), deck: faults.NewDeck(chosen, s.seed), serves: first}
	r.audits = cluster.NewAuditLogs(c)
	r.report = report.New(s.command(), s.seed, s.store, s.servers, c.Version(ctx))
	if note != "" {
		r.report.Notes = append(r.report.Notes, note)
	}
	converter := traffic.NewConverter()
	defer converter.Close()
	r.behind = traffic.NewBehind(r.rec)
	defer r.behind.Close()
	if err := traffic.Setup(ctx, c, r.rec, converter); err != nil {
		return 0, err
	}
	if r.table, err = cluster.NewTable(ctx, c, traffic.Ours, r.rec.Now); err != nil {
		return 0, err
	}
	defer r.writeLogs()
	began, next := time.Now(), first
	for left := time.Duration(s.minutes * float64(time.Minute)); left > 0 && ctx.Err() == nil; {
		took := min(left, s.round)
		if left-took < s.round/3 {
			took = left
		}
		left -= took
		err := r.oneRound(ctx, took, next)
		next = releases.next()
		r.report.Took, r.report.Kills = time.Since(began), c.Kills()
		r.report.Starts, r.report.Others = c.Starts()
		if e := r.writeReport(); err == nil {
			err = e
		}
		if err != nil {
			return r.violations, err
		}
		if s.stop && r.violations > 0 {
			break
		}
	}
	if r.number == 0 {
		return 0, errors.New("the run ended before anything was judged")
	}
	fmt.Fprintf(out, "%sthe report is %s\n", r.report.Summary(), filepath.Join(s.out, "report.html"))
	return r.violations, nil
}

// writeReport writes the report of the rounds so far.
func (r *run) writeReport() error {
	for name, write := range map[string]func(io.Writer) error{"report.html": r.report.WriteHTML, "report.json": r.report.WriteJSON} {
		f, err := os.Create(filepath.Join(r.settings.out, name))
		if err != nil {
			return err
		}
		if err := errors.Join(write(f), f.Close()); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return nil
}

// serveArgs are flags of the servers: history is deleted as fast as may be, so that every boundary is met often, and part of
// it is packed; the cache file is used for the few objects that there are; answers can be CBOR,
// policies can change objects, and controllers migrate them to another version and keep ServiceCIDRs.
var serveArgs = []string{"--feature-gates=CBORServingAndStorage=true,MutatingAdmissionPolicy=true,StorageVersionMigrator=true", "--controllers=*,service-cidr-controller,storage-version-migrator-controller",
	"--runtime-config=admissionregistration.k8s.io/v1alpha1=true", "--cache-file-from=1", "--cache-plain-bytes=20000", fmt.Sprintf("--history-retention=%s", history.Retention),
	fmt.Sprintf("--history-log-retention=%s", history.LogRetention), fmt.Sprintf("--event-ttl=%s", history.EventTTL), "--enable-admission-plugins=NodeRestriction"}

type run struct {
	*settings
	out        io.Writer
	c          *cluster.Cluster
	rec        *history.Recorder
	table      *cluster.Table
	audits     *cluster.AuditLogs
	behind     *traffic.Behind
	deck       *faults.Deck
	serves     cluster.Release // the release of the servers
	number     int
	earlier    []*history.Op
	misdated   time.Duration // see history.Round
	violations int
	report     *report.Run
}

// oneRound upgrades the servers to a release, runs traffic and faults for some time, waits until everything has settled, and judges the
// history.
func (r *run) oneRound(ctx context.Context, long time.Duration, release cluster.Release) error {
	r.number++
	roundSeed := r.seed*1000 + uint64(r.number)
	t := traffic.New(r.c, r.rec, r.number, traffic.Options{Seed: roundSeed, Pace: r.pace, Fleet: r.fleet, Release: release, Behind: r.behind})
	polling, stopPolling := context.WithCancel(context.Background())
	stormy, calm := context.WithTimeout(ctx, long)
	defer calm()
	var wg, polls sync.WaitGroup
	polls.Go(func() { r.table.Run(polling, 200*time.Millisecond) })
	r.heartbeats(polling, &polls)
	defer polls.Wait()
	defer stopPolling()
	wg.Go(func() { t.Run(stormy) })
	err := r.upgrade(t, release)
	if err == nil {
		r.calmFirst(stormy, long)
		err = faults.Run(stormy, r.c, r.rec, traffic.Ours, traffic.Scopes(), r.deck, r.pause)
	}
	calm()
	wg.Wait()
	final := uint64(0)
	if err == nil {
		final, err = t.Settle(patience)
	}
	if err != nil {
		r.rec.Stuck(err.Error())
	}
	t.Finish(final, patience)
	if err == nil {
		if err := t.Finally(context.Background()); err != nil {
			r.rec.Stuck("a list when all is quiet: " + err.Error())
		}
	}
	stopPolling()
	polls.Wait()
	r.verify()
	round := r.rec.End()
	round.Final, round.Number = final, r.number
	if err := r.table.Cut(context.Background(), round); err != nil {
		return fmt.Errorf("reading the table: %w", err)
	}
	round.Reloads, round.Earlier, round.Misdated = r.c.Reloads(r.rec.At), r.earlier, r.misdated
	if round.Audits, err = r.audits.Read(); err != nil {
		return err
	}
	return r.judged(round)
}

// upgrade restarts the servers as a release while clients continue, and then starts the traffic for that release.
func (r *run) upgrade(t *traffic.Traffic, to cluster.Release) error {
	if to != r.serves {
		if err := faults.Upgrade(r.c, r.rec, releaseArgs(to), to); err != nil {
			return err
		}
		r.serves = to
	}
	t.Upgraded()
	return nil
}

// One round of calmEvery has no faults for calmFor after its upgrade. Some promises give servers half a minute, which would never pass
// between faults: those of PostgreSQL keep all servers from their work for much of the time.
const (
	calmEvery = 4
	calmFor   = 32 * time.Second
)

// calmFirst waits until the calm at the beginning of a round is over.
func (r *run) calmFirst(ctx context.Context, long time.Duration) {
	if r.number%calmEvery != 2 || long < defaultRound {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(calmFor):
	}
}

// heartbeats records when the program or a server stands still, until ctx ends.
func (r *run) heartbeats(ctx context.Context, running *sync.WaitGroup) {
	stalled := func(server int) func(begin, end time.Duration) {
		return func(begin, end time.Duration) {
			r.rec.Add(&history.Stall{Server: server, Begin: begin, End: end})
		}
	}
	running.Go(func() { heartbeat.Own(ctx, r.rec.Now, stalled(-1)) })
	for i := range r.c.Len() {
		running.Go(func() {
			client := r.c.Client(cluster.HTTP1, false)
			defer client.CloseIdleConnections()
			heartbeat.Other(ctx, r.rec.Now, func(ctx context.Context) error { return r.c.Alive(ctx, client, i) }, stalled(i))
		})
	}
}

// verify runs "rowlock store verify".
func (r *run) verify() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if _, err := r.c.Store(ctx, append([]string{"verify", "--store", r.c.StoreURL()}, r.c.Keys()...)...); err != nil {
		r.rec.Problem(err.Error())
	}
}

func (r *run) judged(round *history.Round) error {
	began := time.Now()
	verdict := judge.Round(round)
	r.violations += len(verdict.Violations)
	r.report.Add(round, verdict)
	rows := 0
	for _, s := range round.Segments {
		rows += len(s.Rows)
	}
	fmt.Fprintf(r.out, "round %d, release %s: %d operations, %d lists, %d watches, %d revisions, %d faults, judged in %s, %d violations, not judged: %v\n",
		r.number, r.serves, len(round.Ops), len(round.Lists), len(round.Streams), rows, len(round.Faults), time.Since(began).Round(time.Millisecond), len(verdict.Violations), verdict.Open)
	for _, v := range verdict.Violations {
		fmt.Fprintf(r.out, "VIOLATION of %s\n", v.String())
	}
	if len(verdict.Violations) > 0 || r.keep {
		path := filepath.Join(r.settings.out, fmt.Sprintf("round-%d.json", r.number))
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := round.Write(f); err != nil {
			return err
		}
		if len(verdict.Violations) > 0 {
			fmt.Fprintf(r.out, "the history is in %s; judge it again with -judge %s; run it again with %s\n", path, path, r.command())
		}
	}
	for _, f := range round.Faults {
		if f.Stamps {
			r.misdated = max(r.misdated, f.End)
		}
	}
	for _, l := range round.Losses {
		r.misdated = max(r.misdated, l.End)
	}
	for _, o := range round.Ops { // two rounds are longer than any request
		if o.Writes() && o.Outcome == history.Unknown {
			r.earlier = append(r.earlier, o)
		}
	}
	r.earlier = r.earlier[max(0, len(r.earlier)-5000):]
	return nil
}

// command runs the same again.
func (s *settings) command() string {
	args := []string{"go run ./e2e/robustness", fmt.Sprintf("-minutes %g -store %s -servers %d -faults %s -seed %d", s.minutes, s.store, s.servers, s.faults, s.seed)}
	for _, o := range []struct {
		flag           string
		value, unnamed any
	}{{"-round", s.round, defaultRound}, {"-pace", s.pace, defaultPace}, {"-pause", s.pause, defaultPause}, {"-fleet", s.fleet, 0}, {"-release", s.release, drawn}, {"-binary", s.binary, ""}, {"-other-binary", s.other, ""}} {
		if o.value != o.unnamed {
			args = append(args, fmt.Sprintf("%s %v", o.flag, o.value))
		}
	}
	return strings.Join(args, " ")
}

// writeLogs keeps the logs of the servers if a violation was found.
func (r *run) writeLogs() {
	if r.violations == 0 && !r.keep {
		return
	}
	for i := range r.c.Len() {
		_ = os.WriteFile(filepath.Join(r.settings.out, fmt.Sprintf("server-%d.log", i)), []byte(r.c.Log(i)), 0o644) // a help, no result
	}
}

// again judges a history in a file.
func (s *settings) again(out io.Writer) (violations int, err error) {
	f, err := os.Open(s.judge)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	rounds, err := history.Read(f)
	if err != nil {
		return 0, err
	}
	if len(rounds) == 0 {
		return 0, fmt.Errorf("%s has no history", s.judge)
	}
	for _, round := range rounds {
		verdict := judge.Round(round)
		violations += len(verdict.Violations)
		for _, v := range verdict.Violations {
			fmt.Fprintf(out, "VIOLATION of %s\n", v.String())
		}
		fmt.Fprintf(out, "judged: %v, not judged: %v\n", verdict.Judged, verdict.Open)
	}
	return violations, nil
}
