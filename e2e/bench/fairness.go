package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	listers    = 200 // clients that list all Pods without a pause
	listedPods = 5000
)

// measureFairness measures the latencies of small writes on an idle server and while many clients list all Pods,
// with priority and fairness and without.
func measureFairness(e *env) error {
	for _, fair := range []bool{true, false} {
		if !e.only.MatchString(fmt.Sprintf("fairness %t", fair)) {
			continue
		}
		if err := e.fairness(fair); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) fairness(fair bool) error {
	s, stop, err := e.start(fmt.Sprintf("--enable-priority-and-fairness=%t", fair))
	if err != nil {
		return err
	}
	defer stop()
	account(s)
	if err := fill(s, listedPods, pods, func(i int) []byte { return pod(fmt.Sprintf("p%d", i), fmt.Sprintf("n%d", i%500), "a") }); err != nil {
		return err
	}
	c, err := newClient(s)
	if err != nil {
		return err
	}
	if err := grantClusterAdmin(c); err != nil {
		return err
	}
	var idle, loaded [][]result // by round, then by kind of client
	var served, refused, rss []float64
	for range max(1, e.pairs) {
		without, err := e.runSmall(s, smallWriters)
		if err != nil {
			return err
		}
		p, err := startListers(s)
		if err != nil {
			return err
		}
		time.Sleep(2 * time.Second)
		profiled := profile(s, e.seconds)
		with, err := e.runSmall(s, smallWriters)
		rss = append(rss, resident(s.Pid()))
		lists, refusals := p.stop()
		if err = cmp.Or(err, profiled()); err != nil {
			return err
		}
		idle, loaded, served, refused = append(idle, without), append(loaded, with), append(served, lists), append(refused, refusals)
	}
	for i, k := range smallWriters {
		e.report(fmt.Sprintf("%s, fairness %t", k.name, fair), "%v", compare(idle, loaded, i))
	}
	e.report(fmt.Sprintf("  %d listing clients", listers), "%.1f lists/s   %.1f/s refused   resident %.0f MB", median(served), median(refused), median(rss))
	return nil
}

// listerProcess runs the listing clients in a process of their own, so that decoding their answers does not
// delay the clients that are measured.
type listerProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   bytes.Buffer
	began time.Time
}

// listersArgument makes the program run as a listerProcess; the server's URL and data directory follow.
const listersArgument = "listers"

func startListers(s *harness.Server) (*listerProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &listerProcess{cmd: exec.Command(self, listersArgument, s.URL, s.DataDir), began: time.Now()}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.cmd.Start()
}

// stop ends the process, and returns how many lists a second the server served and refused.
func (p *listerProcess) stop() (served, refused float64) {
	took := time.Since(p.began).Seconds()
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: listing clients:", err)
	}
	_, _ = fmt.Sscan(p.out.String(), &served, &refused) // empty if the process failed
	return served / took, refused / took
}

// runListers is the process: it lists until standard input ends, and prints how many lists were served and refused.
func runListers(url, dataDir string) error {
	s := &harness.Server{URL: url, DataDir: dataDir}
	var served, refused atomic.Int64
	for range listers {
		c, err := newClient(s)
		if err != nil {
			return err
		}
		go listAll(c, &served, &refused) // until the process ends
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // any error ends the process as well
	fmt.Println(served.Load(), refused.Load())
	return nil
}

// listAll lists all Pods in a loop. It pauses for a second after a refusal, as client-go does.
func listAll(c *client, served, refused *atomic.Int64) {
	for {
		r, err := c.as("lister", []string{"system:authenticated"}, "GET", "/api/v1/pods", nil)
		if err != nil {
			return
		}
		resp, err := c.c.Do(r)
		if err != nil {
			continue
		}
		_, err = c.drain(resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK {
			served.Add(1)
			continue
		}
		refused.Add(1)
		time.Sleep(time.Second)
	}
}
