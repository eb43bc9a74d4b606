package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// followers is the process of the client that updates the workflow and of its watchers. It is separate so that reading 20 MB does
// not delay the clients that are measured.
type followers struct {
	cmd  *exec.Cmd
	hold io.Closer
	out  *bufio.Reader
}

// followed is the result of the followers.
type followed struct {
	events, ended int // ended: watches that the server ended
	updates       int
	seconds, took float64 // the time of all updates with the pauses, and without
}

// followersArgument makes the program run as the followers; the server's URL, its data directory and the name of a workflowUpdate follow.
const followersArgument = "followers"

// newFollowers starts the process, and returns when all watches are open.
func newFollowers(s *harness.Server, update string) (*followers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f := &followers{cmd: exec.Command(self, followersArgument, s.URL, s.DataDir, update)}
	f.cmd.Stderr = os.Stderr
	if f.hold, err = f.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	f.out = bufio.NewReader(out)
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := f.out.ReadString('\n'); err != nil {
		return nil, fmt.Errorf("the followers: %w, %w", err, f.cmd.Wait())
	}
	return f, nil
}

func (f *followers) end() (seen followed, err error) {
	f.hold.Close()
	_, err = fmt.Fscan(f.out, &seen.events, &seen.ended, &seen.updates, &seen.seconds, &seen.took)
	if late := f.cmd.Wait(); late != nil {
		err = late
	}
	return seen, err
}

// runFollowers watches and updates the workflow until standard input ends, and prints its results.
func runFollowers(url, dataDir, update string) error {
	s := &harness.Server{URL: url, DataDir: dataDir}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	watching, err := followWorkflow(ctx, s)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(workflowUpdates, func(u workflowUpdate) bool { return u.name == update })
	if i < 0 {
		return fmt.Errorf("%q is no update", update)
	}
	c, err := newClient(s)
	if err != nil {
		return err
	}
	updating := updateWorkflow(ctx, c, workflowUpdates[i])
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin) // any error ends the process as well
	cancel()
	seen, err := updating()
	if err != nil {
		return err
	}
	events, ended := watching()
	fmt.Println(events, ended, seen.updates, seen.seconds, seen.took)
	return nil
}

// updateWorkflow starts to update the status once a second until ctx ends. The returned function waits for the end, and returns the results.
func updateWorkflow(ctx context.Context, c *client, u workflowUpdate) func() (followed, error) {
	var did followed
	var failed error
	rest := ""
	if u.whole {
		rest = workflowNodes(u.message)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		began := time.Now()
		for ; ctx.Err() == nil && failed == nil; did.updates++ {
			version := ""
			if u.method == http.MethodPut {
				if version, failed = workflowVersion(c, workflows+"/w", "PartialObjectMetadata"); failed != nil {
					return
				}
				version = fmt.Sprintf(`,"resourceVersion":%q`, version)
			}
			body := u.body(did.updates, version, rest)
			sent := time.Now()
			_, failed = c.do(u.method, u.path, u.contentType, "", body)
			did.took += time.Since(sent).Seconds()
			sleepUntil(sent.Add(time.Second))
		}
		did.seconds = time.Since(began).Seconds()
	}()
	return func() (followed, error) {
		<-ended
		return did, failed
	}
}

// workflowVersion returns the resourceVersion of the object at a path.
func workflowVersion(c *client, path, as string) (string, error) {
	resp, err := c.open("GET", path, "", "application/json;as="+as+";g=meta.k8s.io;v=v1", nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var at struct {
		Metadata struct{ ResourceVersion string }
	}
	err = json.NewDecoder(resp.Body).Decode(&at)
	return at.Metadata.ResourceVersion, err
}

// followWorkflow opens the watches, which end with ctx. The returned function waits for their end, and returns the number of events and
// the number of watches that the server ended.
func followWorkflow(ctx context.Context, s *harness.Server) (func() (events, ended int64), error) {
	var wg sync.WaitGroup
	var events, over atomic.Int64
	for i := range largeWatchers {
		c, err := newClient(s)
		if err != nil {
			return nil, err
		}
		version, err := workflowVersion(c, workflows+"?limit=1", "PartialObjectMetadataList")
		if err != nil {
			return nil, err
		}
		r, err := http.NewRequestWithContext(ctx, "GET", c.url+workflows+"?watch=1&resourceVersion="+version, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
		resp, err := c.c.Do(r)
		if err != nil {
			return nil, err
		}
		var in io.Reader = resp.Body
		if i < largeSlow {
			in = &trickle{in}
		}
		wg.Go(func() {
			defer resp.Body.Close()
			buf := make([]byte, 256<<10)
			for read := int64(0); ; {
				n, err := in.Read(buf)
				if before := read / largeBytes; (read+int64(n))/largeBytes > before {
					events.Add(1)
				}
				if read += int64(n); err != nil {
					if ctx.Err() == nil {
						over.Add(1)
					}
					return
				}
			}
		})
	}
	return func() (int64, int64) { wg.Wait(); return events.Load(), over.Load() }, nil
}
