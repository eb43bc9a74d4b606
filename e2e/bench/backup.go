package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	backupRate    = 1000 // writes a second
	backupWriters = 16
)

// paced holds the figures of a server under backupRate writes a second.
type paced struct {
	cpu, follower time.Duration // processor time a second: of the server, and of a separate follower
	p50, p99      time.Duration
	rate          float64
	lag           float64 // most seconds that a backup in the server was behind
}

// measureBackup measures the cost and the lag of a continuous backup under steady writes, in the server and in a
// separate process, and the duration of a restore.
func measureBackup(e *env) error {
	for _, variant := range []string{"without a backup", "backup in the server", "backup as a process"} {
		if !e.only.MatchString(variant) {
			continue
		}
		var all []paced
		for range e.pairs {
			p, err := e.backedUp(variant)
			if err != nil {
				return fmt.Errorf("%s: %w", variant, err)
			}
			all = append(all, p)
		}
		slices.SortFunc(all, func(a, b paced) int { return int(a.cpu - b.cpu) })
		m := all[len(all)/2]
		e.report(fmt.Sprintf("%d writes/s, %s", backupRate, variant), "%.0f/s   p50 %v   p99 %v   cpu %v a second (%v to %v)   follower %v   at most %.2f s behind",
			m.rate, m.p50.Round(10*time.Microsecond), m.p99.Round(10*time.Microsecond), m.cpu.Round(time.Millisecond), all[0].cpu.Round(time.Millisecond), all[len(all)-1].cpu.Round(time.Millisecond), m.follower.Round(time.Millisecond), m.lag)
	}
	if !e.only.MatchString("restore") {
		return nil
	}
	return e.restores()
}

func (e *env) backedUp(variant string) (p paced, err error) {
	dir, err := os.MkdirTemp("", "rowlock-bench-backup-")
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(dir)
	var args []string
	if variant == "backup in the server" {
		args = append(args, "--backup-dir="+filepath.Join(dir, "backup"))
	}
	s, stop, err := e.start(args...)
	if err != nil {
		return p, err
	}
	defer stop()
	if err := fill(s, 2000, configMaps, func(i int) []byte { return configMap(fmt.Sprintf("c%d", i), 1000) }); err != nil {
		return p, err
	}
	pid := 0
	if variant == "backup as a process" {
		cmd, err := follower(s, filepath.Join(dir, "backup"))
		if err != nil {
			return p, err
		}
		defer func() {
			_ = cmd.Process.Kill() // its output is not needed
			_ = cmd.Wait()
		}()
		pid = cmd.Process.Pid
	}
	time.Sleep(3 * time.Second) // the first base
	return e.pace(s, pid, func(c *client, n int) error {
		name := fmt.Sprintf("c%d", n%2000)
		_, err := c.do("PUT", configMaps+"/"+name, "application/json", "", changing(name, n/backupWriters))
		return err
	})
}

// follower starts store backup --follow on the database of a server.
func follower(s *harness.Server, dir string) (*exec.Cmd, error) {
	bin, err := harness.Binary()
	if err != nil {
		return nil, err
	}
	o := s.Options()
	cmd := exec.Command(bin, "store", "backup", "--follow", dir, "--store", o.Store)
	return cmd, cmd.Start()
}

// pace calls write backupRate times a second for e.seconds.
func (e *env) pace(s *harness.Server, follower int, write func(c *client, n int) error) (p paced, err error) {
	var mu sync.Mutex
	var latencies []time.Duration
	used, other := processorTime(s.Pid()), time.Duration(0)
	if follower != 0 {
		other = processorTime(follower)
	}
	looking := make(chan float64, 1)
	ended := make(chan struct{})
	go func() { looking <- worstLag(s, ended) }()
	began := time.Now()
	end := began.Add(e.seconds)
	errs := make([]error, backupWriters)
	var wg sync.WaitGroup
	for w := range backupWriters {
		wg.Go(func() {
			c, err := newClient(s)
			var own []time.Duration
			for i := 0; err == nil; i++ {
				due := began.Add(time.Duration(i*backupWriters+w) * time.Second / backupRate)
				if due.After(end) {
					break
				}
				time.Sleep(time.Until(due))
				t := time.Now()
				err = write(c, i*backupWriters+w)
				own = append(own, time.Since(t))
			}
			mu.Lock()
			defer mu.Unlock()
			latencies, errs[w] = append(latencies, own...), err
		})
	}
	wg.Wait()
	took := time.Since(began).Seconds()
	p.cpu = time.Duration(float64(processorTime(s.Pid())-used) / took)
	if follower != 0 {
		p.follower = time.Duration(float64(processorTime(follower)-other) / took)
	}
	close(ended)
	p.lag = <-looking
	if err := errors.Join(errs...); err != nil {
		return p, err
	}
	slices.Sort(latencies)
	p.p50, p.p99, p.rate = latencies[len(latencies)/2], latencies[len(latencies)*99/100], float64(len(latencies))/took
	return p, nil
}

// changing returns a ConfigMap of 1 KB that depends on i, because a server skips writes without a change. Half of
// it is incompressible.
func changing(name string, i int) []byte {
	var noise [256]byte
	rand.NewChaCha8([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}).Read(noise[:])
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"n":"%d","noise":"%x","v":%q}}`, name, i, noise, strings.Repeat("v", 400))
}

// worstLag polls the lag of the backup until ended is closed, and returns the largest.
func worstLag(s *harness.Server, ended <-chan struct{}) (worst float64) {
	c, err := newClient(s)
	if err != nil {
		return 0
	}
	for {
		worst = max(worst, c.gauge("rowlock_backup_lag_seconds"))
		select {
		case <-ended:
			return worst
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// restores measures the duration of a restore from a base and commits.
func (e *env) restores() error {
	dir, err := os.MkdirTemp("", "rowlock-bench-restore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	backup := filepath.Join(dir, "backup")
	s, stop, err := e.start("--backup-dir="+backup, "--history-retention=1h")
	if err != nil {
		return err
	}
	defer stop()
	time.Sleep(3 * time.Second) // the base is written first, so the log has all objects
	if err := fill(s, e.objects, configMaps, func(i int) []byte { return configMap(fmt.Sprintf("c%d", i), 1000) }); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	bin, err := harness.Binary()
	if err != nil {
		return err
	}
	target, err := e.newStore(dir)
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"restore", backup, "--store", target}, {"restore", "--verify-latest", backup}} {
		began := time.Now()
		cmd := exec.Command(bin, append([]string{"store"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, out)
		}
		e.report(strings.TrimSuffix("store "+strings.Join(args[:2], " "), " "+backup)+", "+strconv.Itoa(e.objects)+" objects from the log", "%v, at most %d MB of memory", time.Since(began).Round(10*time.Millisecond), mostMemory(cmd))
	}
	return nil
}

// gauge reads a metric; 0 if it does not exist.
func (c *client) gauge(name string) float64 {
	resp, err := c.open("GET", "/metrics", "", "", nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return 0
			}
			return v
		}
	}
	return 0
}
