package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// churnWatch is the first message to the process of the watchers. The watchers run in a process of their own, so that they do
// not compete with the writing clients for goroutines.
type churnWatch struct {
	URL, DataDir string // of a server of the bench, or
	Entry        string // of the list of -against
	Path, From   string
	HTTP2        bool
	Watchers     int
}

// churnSeen holds the events that the watchers received.
type churnSeen struct {
	Watchers [][]arrival // by watcher
	Ended    int         // watches that the server ended; each was renewed
}

type arrival struct {
	Event uint64
	At    int64 // Unix time in nanoseconds
}

const (
	churnWatchArgument = "churn-watchers"
	churnQuiet         = 10 * time.Second // without an event, the round ends
	churnPatience      = 3 * time.Minute
)

// churnProcess is the running process. It reads a churnWatch from its standard input, writes true once all watch, reads the
// number of events that are due, and writes a churnSeen.
type churnProcess struct {
	cmd *exec.Cmd
	in  *gob.Encoder
	out *gob.Decoder
}

func (w churnWatch) start(ctx context.Context) (*churnProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &churnProcess{cmd: exec.CommandContext(ctx, self, churnWatchArgument)}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.in, p.out = gob.NewEncoder(in), gob.NewDecoder(out)
	var ready bool
	if err := errors.Join(p.in.Encode(w), p.out.Decode(&ready)); err != nil {
		p.stop()
		return nil, fmt.Errorf("the watchers: %w", err)
	}
	return p, nil
}

// collect waits until each watcher has received so many events, or no more arrive.
func (p *churnProcess) collect(due int) (seen churnSeen, err error) {
	if err := errors.Join(p.in.Encode(due), p.out.Decode(&seen)); err != nil {
		return seen, fmt.Errorf("the watchers: %w", err)
	}
	return seen, nil
}

func (p *churnProcess) stop() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
}

// churnWatcher is one watcher.
type churnWatcher struct {
	*client
	path  string
	last  string // the newest resource version that it has seen
	mu    sync.Mutex
	seen  []arrival
	ended *atomic.Int64 // shared by all watchers, like came
	came  *atomic.Int64 // when an event came last
}

func newChurnWatcher(c *client, w churnWatch) *churnWatcher {
	return &churnWatcher{client: c, path: w.Path, last: w.From, ended: new(atomic.Int64), came: new(atomic.Int64)}
}

// runChurnWatchers is the process of the watchers.
func runChurnWatchers() error {
	in, out := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	var w churnWatch
	if err := in.Decode(&w); err != nil {
		return err
	}
	t, err := w.target()
	if err != nil {
		return err
	}
	var ended, came atomic.Int64
	all := make([]*churnWatcher, w.Watchers)
	for i := range all {
		c := newChurnWatcher(t.client(w.HTTP2), w)
		c.ended, c.came = &ended, &came
		resp, err := c.watch()
		if err != nil {
			return err
		}
		go c.follow(resp) // until the process ends
		all[i] = c
	}
	var due int
	if err := errors.Join(out.Encode(true), in.Decode(&due)); err != nil {
		return err
	}
	came.Store(time.Now().UnixNano())
	for began := time.Now(); time.Since(began) < churnPatience && time.Since(time.Unix(0, came.Load())) < churnQuiet; time.Sleep(20 * time.Millisecond) {
		if churnSaw(all, due) {
			time.Sleep(200 * time.Millisecond) // duplicates would arrive now
			if time.Since(time.Unix(0, came.Load())) >= 200*time.Millisecond {
				break
			}
		}
	}
	seen := churnSeen{Ended: int(ended.Load())}
	for _, c := range all {
		c.mu.Lock()
		seen.Watchers = append(seen.Watchers, c.seen)
		c.seen = nil
		c.mu.Unlock()
	}
	return out.Encode(seen)
}

func churnSaw(all []*churnWatcher, due int) bool {
	for _, c := range all {
		c.mu.Lock()
		n := len(c.seen)
		c.mu.Unlock()
		if n < due {
			return false
		}
	}
	return true
}

func (w churnWatch) target() (*target, error) {
	if w.Entry != "" {
		return otherTarget(w.Entry)
	}
	return own(&harness.Server{URL: w.URL, DataDir: w.DataDir})
}

func (c *churnWatcher) watch() (*http.Response, error) {
	return c.open(http.MethodGet, c.path+"?watch=1&allowWatchBookmarks=true&timeoutSeconds=3000&resourceVersion="+c.last, "", "", nil)
}

// follow reads a watch. When the server ends it, follow watches again from the last revision, or from the newest one if
// the server answers 410.
func (c *churnWatcher) follow(resp *http.Response) {
	for {
		if resp != nil {
			c.readEvents(resp.Body)
			resp.Body.Close()
			c.ended.Add(1)
		}
		var err error
		resp, err = c.watch()
		switch {
		case answered(err, http.StatusGone):
			if from, err := revision(c.client); err == nil {
				c.last = from
			}
		case err != nil:
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func (c *churnWatcher) readEvents(body io.Reader) {
	lines := bufio.NewReaderSize(body, 128<<10)
	for {
		line, err := lines.ReadSlice('\n')
		now := time.Now().UnixNano()
		if err != nil {
			return
		}
		if bytes.HasPrefix(line, []byte(`{"type":"ERROR"`)) {
			c.last = "0" // the answer to the next watch has the error
			if from, err := revision(c.client); err == nil {
				c.last = from
			}
			return
		}
		if v := between(line, `"resourceVersion":"`, `"`); v != nil {
			c.last = string(v)
		}
		event, err := strconv.ParseUint(string(between(line, `"event":"@`, `@`)), 10, 64)
		if err != nil {
			continue // a bookmark
		}
		c.mu.Lock()
		c.seen = append(c.seen, arrival{event, now})
		c.mu.Unlock()
		c.came.Store(now)
	}
}

// between returns the part of a line between two strings; nil if the line does not have both.
func between(line []byte, before, after string) []byte {
	_, line, _ = bytes.Cut(line, []byte(before))
	line, _, found := bytes.Cut(line, []byte(after))
	if !found {
		return nil
	}
	return line
}
