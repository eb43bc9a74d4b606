package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/million"
	"github.com/rowlock/rowlock/e2e/bench/record"
	"github.com/rowlock/rowlock/e2e/harness"
)

// scaled is the server of -scale, with a large cluster in its database.
type scaled struct {
	*env
	shape  million.Shape
	dir    string
	store  string
	server *harness.Server
	stored float64 // MB of live values
	bare   memory  // of a server with an empty database
}

// scaleParts are the parts of -scale, measured in this order on one database; -only selects among them.
var scaleParts = []struct {
	name string
	run  func(*scaled) error
}{
	{"start", scaleStart},
	{"memory", scaleMemory},
	{"cache", scaleCache},
	{"pages", scalePages},
	{"label", scaleLabel},
	{"node", scaleNode},
	{"whole", scaleWhole},
	{"informers", scaleInformers},
	{"create", scaleCreate},
	{"month", scaleMonth},
}

// measureScale builds the cluster and measures all parts in one run.
func measureScale(e *env) (err error) {
	dir, err := os.MkdirTemp("", "rowlock-bench-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &scaled{env: e, shape: million.Shape{Pods: e.objects, Seed: e.number}, dir: dir}
	if s.store, err = e.newStore(dir); err != nil {
		return err
	}
	defer func() {
		if s.server != nil {
			s.server.Kill()
		}
	}()
	if err := s.build(); err != nil {
		return fmt.Errorf("building the cluster: %w", err)
	}
	for _, p := range scaleParts {
		if !e.only.MatchString(p.name) {
			continue
		}
		if err := p.run(s); err != nil {
			return fmt.Errorf("%s: %w\n%s", p.name, err, s.lastWords())
		}
	}
	return nil
}

// build restores the cluster into the database, and starts a server once, which creates its certificates and the
// default objects of every cluster.
func (s *scaled) build() error {
	seed := s.seed
	if seed == "" {
		seed = filepath.Join(s.dir, "seed")
	}
	began := time.Now()
	if err := s.shape.File(seed); err != nil {
		return fmt.Errorf("-seed: %w", err)
	}
	s.figure(record.Of("building", "backup of the cluster", "s", record.Lower, time.Since(began).Seconds()))
	bin, err := harness.Binary()
	if err != nil {
		return err
	}
	began = time.Now()
	cmd := exec.CommandContext(s.ctx, bin, "store", "restore", seed, "--store", s.store)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("store restore: %w\n%s", err, out)
	}
	s.figure(record.Of("building", "store restore", "s", record.Lower, time.Since(began).Seconds()))
	if s.bare, err = s.empty(); err != nil {
		return err
	}
	if err := s.start(s.ctx); err != nil {
		return err
	}
	if err := s.quiet(); err != nil {
		return err
	}
	w, err := weigh(s.ctx, s.store)
	if err != nil {
		return err
	}
	s.stored = float64(w.live) / (1 << 20)
	s.figure(record.Of("building", "objects", "", "", float64(w.objects)))
	s.figure(record.Of("building", "stored bytes, the sum of the values", "MB", "", s.stored))
	s.figure(record.Of("building", "files of the database by stored bytes", "times", record.Lower, float64(w.size)/float64(w.live)))
	return nil
}

// empty returns the memory of a server with an empty database.
func (s *scaled) empty() (memory, error) {
	other, stop, err := s.env.start()
	if err != nil {
		return memory{}, err
	}
	defer stop()
	return calm(other.Pid())
}

// start starts a server on the database, in place of the last one.
func (s *scaled) start(ctx context.Context, args ...string) error {
	port := 0
	if s.server != nil {
		port = s.server.Port
		if err := s.stop(); err != nil {
			return err
		}
	}
	var err error
	s.server, err = harness.Start(ctx, s.options(port, args...))
	return err
}

// scalePatience limits the start of a server with a million objects on a busy machine.
const scalePatience = 20 * time.Minute

// options returns the options of a server on the database.
func (s *scaled) options(port int, args ...string) harness.Options {
	if profiles.dir != "" {
		args = append(args, "--profiling")
	}
	return harness.Options{DataDir: filepath.Join(s.dir, "data"), Store: s.store, Port: port, Args: args, Patience: scalePatience}
}

func (s *scaled) stop() error {
	server := s.server
	s.server = nil
	return server.Stop()
}

// quiet waits until the server has created the default objects of each namespace, which it does after ten seconds
// without a controller-manager, and writes no more.
func (s *scaled) quiet() error {
	c, err := newClient(s.server)
	if err != nil {
		return err
	}
	last, since, whole := "", time.Now(), false
	for late := until(10 * time.Minute); !whole || time.Since(since) < 3*time.Second; {
		if late() {
			return errors.New("the server still writes ten minutes after its start")
		}
		now, err := revision(c)
		if err != nil {
			return err
		}
		if now != last {
			last, since = now, time.Now()
		}
		if time.Sleep(200 * time.Millisecond); !whole {
			if whole, err = published(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// published reports whether each namespace has its root CA ConfigMap.
func published(c *client) (bool, error) {
	namespaces, err := total(c, "/api/v1/namespaces")
	if err != nil {
		return false, err
	}
	maps, err := total(c, "/api/v1/configmaps")
	return maps >= namespaces, err
}

// total returns the number of objects in a collection.
func total(c *client, collection string) (int, error) {
	text, err := c.read(collection + "?limit=1")
	if err != nil {
		return 0, err
	}
	var list struct {
		Metadata struct{ RemainingItemCount int }
		Items    []json.RawMessage
	}
	err = json.Unmarshal(text, &list)
	return len(list.Items) + list.Metadata.RemainingItemCount, err
}

// revision returns the newest resource version.
func revision(c *client) (string, error) {
	text, err := c.read("/api/v1/namespaces?limit=1")
	_, rest, _ := strings.Cut(string(text), `"resourceVersion":"`)
	rv, _, _ := strings.Cut(rest, `"`)
	return rv, err
}

// clients returns n clients, which connect with their first request.
func (s *scaled) clients(n int, h2 bool) ([]*client, error) {
	t, err := own(s.server)
	if err != nil {
		return nil, err
	}
	out := make([]*client, n)
	for i := range out {
		out[i] = t.client(h2)
	}
	return out, nil
}

// windows repeats a measurement, for the spread of its figures.
func (s *scaled) windows(measure func() (result, error)) ([]result, error) {
	var all []result
	for range max(1, s.pairs) {
		r, err := measure()
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// lastWords returns the end of the server's log.
func (s *scaled) lastWords() string {
	if s.server == nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(s.server.Log()), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// of returns a number of each result.
func of(all []result, what func(result) float64) []float64 {
	out := make([]float64, len(all))
	for i, r := range all {
		out[i] = what(r)
	}
	return out
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func p50(r result) float64 { return millis(r.p50) }
func p99(r result) float64 { return millis(r.p99) }
