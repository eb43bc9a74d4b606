package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/million"
	"github.com/rowlock/rowlock/e2e/bench/record"
	"github.com/rowlock/rowlock/e2e/harness"
)

// Numbers of informers that list again after a restart: kubelets with the Pods of their node, controllers of one
// namespace, and a few of all Pods. Each has its own connection.
const (
	informers          = 1000
	informersOfAll     = 4
	informersOfNodes   = 500
	informerProcesses  = 2
	informersArgument  = "informers"
	informersPatience  = 15 * time.Minute
	informerTriesAgain = 100 * time.Millisecond
)

// scaleInformers restarts the server while informers wait for it, and measures the time until all of them have listed
// and watch again, and the server's memory until then.
func scaleInformers(s *scaled) error {
	if err := s.start(s.ctx); err != nil {
		return err
	}
	base, err := calm(s.server.Pid())
	if err != nil {
		return err
	}
	var all, half, onTop []float64
	for range max(1, s.pairs) {
		done, most, err := s.rush()
		if err != nil {
			return err
		}
		all, half = append(all, done[len(done)-1]), append(half, done[len(done)/2])
		onTop = append(onTop, most-base.rss)
	}
	name := fmt.Sprintf("%d informers after a restart", informers)
	s.promised(record.Of("informers", name+", all served", "s", record.Lower, all...), 60)
	s.figure(record.Of("informers", name+", half of them served", "s", record.Lower, half...))
	s.promised(record.Of("informers", name+", memory on top of a calm server", "MB", record.Lower, onTop...), 300)
	return nil
}

// rush measures one restart: the sorted times in seconds from readiness until each informer was served, and the peak
// memory of the server after readiness.
func (s *scaled) rush() (done []float64, most float64, err error) {
	port := s.server.Port
	if err := s.stop(); err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, informersPatience)
	defer cancel()
	crowds, err := s.crowds(ctx, port)
	if err != nil {
		return nil, 0, err
	}
	s.server, err = harness.Start(s.ctx, s.options(port))
	if err != nil {
		return nil, 0, err
	}
	ready := time.Now()
	watching, stop := context.WithCancel(ctx)
	watched := peak(watching, s.server.Pid())
	profiled := profile(s.server, s.seconds)
	times, err := crowds()
	stop()
	most = <-watched
	if err := errors.Join(err, profiled()); err != nil {
		return nil, 0, err
	}
	for _, at := range times {
		done = append(done, max(0, time.UnixMicro(at).Sub(ready).Seconds()))
	}
	return sortedFloats(done), most, nil
}

// crowds starts the processes of the informers. The returned function waits for them, and returns when each informer
// was served.
func (s *scaled) crowds(ctx context.Context, port int) (func() ([]int64, error), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var commands []*exec.Cmd
	outs := make([]bytes.Buffer, informerProcesses)
	for i := range informerProcesses {
		cmd := exec.CommandContext(ctx, self, informersArgument, fmt.Sprintf("https://127.0.0.1:%d", port), filepath.Join(s.dir, "data"),
			strconv.Itoa(i), strconv.Itoa(s.shape.Pods), strconv.FormatUint(s.shape.Seed, 10))
		cmd.Stdout, cmd.Stderr = &outs[i], os.Stderr
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		commands = append(commands, cmd)
	}
	return func() (all []int64, err error) {
		for i, cmd := range commands {
			err = errors.Join(err, cmd.Wait())
			var times []int64
			if err == nil {
				err = json.Unmarshal(outs[i].Bytes(), &times)
			}
			all = append(all, times...)
		}
		if err == nil && len(all) != informers {
			err = fmt.Errorf("%d of %d informers were served", len(all), informers)
		}
		return all, err
	}, nil
}

// runInformers is a process of informers, which list and watch as soon as the server admits them. It prints when each
// was served, in microseconds since 1970.
func runInformers(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("%s: %d arguments", informersArgument, len(args))
	}
	part, _ := strconv.Atoi(args[2])
	pods, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(args[4], 10, 64)
	if err != nil {
		return err
	}
	s := &scaled{shape: million.Shape{Pods: pods, Seed: seed}}
	to := &harness.Server{URL: args[0], DataDir: args[1]}
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	times := make([]int64, 0, informers)
	var mu sync.Mutex
	for n := part; n < informers; n += informerProcesses {
		c, err := newClientOver(to, true) // as client-go
		if err != nil {
			return err
		}
		c.gzip, c.buf = true, make([]byte, 16<<10)
		wg.Go(func() {
			if err := c.inform(s.informed(n)); err != nil {
				failed.Store(&err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, time.Now().UnixMicro())
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return json.NewEncoder(os.Stdout).Encode(times)
}

// informed returns the collection of an informer. The few informers of all Pods are spread among the others.
func (s *scaled) informed(n int) string {
	switch every := informers / informersOfAll; {
	case n%every == every/2:
		return allPods + "?resourceVersion=0"
	case n%2 == 0 && n/2 < informersOfNodes:
		return s.onNode(n*37) + "&resourceVersion=0"
	}
	return fmt.Sprintf("/api/v1/namespaces/%s/pods?resourceVersion=0", s.shape.Namespace(n*13%s.shape.Namespaces()))
}

// inform retries a list until the server serves it, and opens a watch from there, which stays open until the process
// ends.
func (c *client) inform(path string) error {
	for late := until(informersPatience); ; time.Sleep(informerTriesAgain) {
		if late() {
			return fmt.Errorf("%s: not served in %v", path, informersPatience)
		}
		resp, err := c.open(http.MethodGet, path, "", "", nil)
		if err != nil {
			continue // the server is not listening or ready, or refused the request
		}
		_, err = c.drain(resp.Body)
		resp.Body.Close()
		if err != nil {
			continue
		}
		// The list is compressed and discarded, so get its revision separately.
		from, err := revision(c)
		if err != nil {
			continue
		}
		watch := strings.Replace(path, "resourceVersion=0", "resourceVersion="+from, 1)
		resp, err = c.open(http.MethodGet, watch+"&watch=1&allowWatchBookmarks=true", "", "", nil)
		if err != nil {
			continue
		}
		go func() { _, _ = io.Copy(io.Discard, resp.Body) }() // until the process ends
		return nil
	}
}
