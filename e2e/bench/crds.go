package main

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/operators"
	"github.com/rowlock/rowlock/e2e/bench/record"
	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	definitionsPath   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	discoveryForm     = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	openAPI2Form      = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	definitionWriters = 8
	// definitionsRest is the time for which a server rests after definitions were used, before its
	// memory is measured: longer than an idle server caches them.
	definitionsRest = 75 * time.Second
)

// manyKinds is a server with many CustomResourceDefinitions.
type manyKinds struct {
	*env
	s     *harness.Server
	all   []*operators.Definition
	bytes int64 // of all
	empty memory
}

// measureCRDs measures the cost of -kinds definitions of real size: their installation under discovery requests,
// their memory before and after use, and what a change of one costs readers of the OpenAPI documents.
func measureCRDs(e *env) error {
	m := &manyKinds{env: e}
	set := operators.New(e.number)
	for i := range e.kinds {
		d, err := set.At(i)
		if err != nil {
			return err
		}
		m.all, m.bytes = append(m.all, d), m.bytes+int64(len(d.Body))
	}
	var stop func()
	var err error
	if m.s, stop, err = e.start(); err != nil {
		return err
	}
	defer stop()
	if m.empty, err = calm(m.s.Pid()); err != nil {
		return err
	}
	e.report("definitions", "%d of %.0f KB each, %.0f MB together; the empty server has %v", len(m.all), float64(m.bytes)/1024/float64(len(m.all)), float64(m.bytes)/(1<<20), m.empty)
	for _, part := range []struct {
		name string
		run  func() error
	}{{"install", m.install}, {"use", m.use}, {"documents", m.documents}, {"rest", m.rest}} {
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// weigh reports the server's additional memory for each definition, compared with the empty server.
func (m *manyKinds) weigh(when string, now memory) {
	each := (now.rss - m.empty.rss) * 1024 / float64(len(m.all))
	m.report("... memory "+when, "%.0f KB each; %v", each, now)
	m.record.Add(record.Of("a definition of many", "resident "+when, "KB", record.Lower, each))
}

// meanwhile sends 50 requests a second over one connection until over is closed. done returns their latencies.
func (m *manyKinds) meanwhile(over <-chan struct{}, ask func(c *client, i int) error) (done func() (result, error)) {
	var r result
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var c *client
		if c, err = newClientOver(m.s, true); err != nil {
			return
		}
		c.gzip = true
		r, err = steady([]*client{c}, 50, func() bool {
			select {
			case <-over:
				return true
			default:
				return false
			}
		}, func(c *client, _, i int) error { return ask(c, i) })
	}()
	return func() (result, error) {
		<-ended
		return r, err
	}
}

// install creates all definitions and waits until objects of each can be listed. Meanwhile a client reads
// discovery, and another reads a trivial answer, which shows the wait for a processor.
func (m *manyKinds) install() error {
	over := make(chan struct{})
	discovery := m.meanwhile(over, func(c *client, i int) error {
		path, accept := "/apis", discoveryForm
		if i%2 == 1 {
			path, accept = "/apis/apiextensions.k8s.io/v1", ""
		}
		_, err := c.do("GET", path, "", accept, nil)
		return err
	})
	nothing := m.meanwhile(over, func(c *client, _ int) error {
		_, err := c.do("GET", "/version", "", "", nil)
		return err
	})
	used, began := processorTime(m.s.Pid()), time.Now()
	profiled := profile(m.s, 5*time.Second)
	err := m.each(func(c *client, d *operators.Definition) error {
		_, err := c.do("POST", definitionsPath, "application/json", "", d.Body)
		return err
	})
	written := time.Since(began)
	if err == nil {
		err = m.each(m.served)
	}
	took := time.Since(began)
	used = processorTime(m.s.Pid()) - used
	close(over)
	discovered, failed := discovery()
	floor, alsoFailed := nothing()
	if err = cmp.Or(err, failed, alsoFailed); err != nil {
		return err
	}
	thousand := took.Seconds() * 1000 / float64(len(m.all))
	m.report("... installed", "%v (written after %v), cpu %v each; a thousand take %.1f s; discovery p50 %v p99 %v; what takes nothing to answer p50 %v p99 %v", took.Round(time.Millisecond), written.Round(time.Millisecond),
		(used / time.Duration(len(m.all))).Round(10*time.Microsecond), thousand, discovered.p50.Round(10*time.Microsecond), discovered.p99.Round(10*time.Microsecond), floor.p50.Round(10*time.Microsecond), floor.p99.Round(10*time.Microsecond))
	m.record.Add(record.Of("a definition of many", "a thousand installed", "s", record.Lower, thousand))
	m.record.Add(record.Of("a definition of many", "discovery p99 meanwhile", "ms", record.Lower, float64(discovered.p99.Microseconds())/1000))
	m.record.Add(record.Of("a definition of many", "p99 meanwhile of what takes nothing to answer", "ms", record.Lower, float64(floor.p99.Microseconds())/1000))
	if err := profiled(); err != nil {
		return err
	}
	now, err := calm(m.s.Pid())
	m.weigh("once installed", now)
	return err
}

// served waits until the server lists objects of a definition.
func (m *manyKinds) served(c *client, d *operators.Definition) (err error) {
	path := fmt.Sprintf(d.Path, d.Versions[0]) + "?limit=1"
	for range 3000 {
		if _, err = c.do("GET", path, "", "", nil); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s is not served: %w", d.Name, err)
}

// each calls fn for all definitions, from several clients concurrently.
func (m *manyKinds) each(fn func(*client, *operators.Definition) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	var failed atomic.Pointer[error]
	for range definitionWriters {
		c, err := newClientOver(m.s, true)
		if err != nil {
			return err
		}
		wg.Go(func() {
			defer c.c.CloseIdleConnections()
			for i := next.Add(1) - 1; i < int64(len(m.all)) && failed.Load() == nil; i = next.Add(1) - 1 {
				if err := fn(c, m.all[i]); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// use creates, gets, lists and applies an object of each definition, and reads the documents of kubectl explain.
func (m *manyKinds) use() error {
	used, began := processorTime(m.s.Pid()), time.Now()
	profiled := profile(m.s, 10*time.Second)
	err := m.each(func(c *client, d *operators.Definition) error {
		version := d.Versions[len(d.Versions)-1]
		path := fmt.Sprintf(d.Path, version)
		for _, r := range []struct {
			method, path, contentType string
			body                      []byte
		}{
			{"POST", path, "application/json", d.Object(version, "one")},
			{"GET", fmt.Sprintf(d.Path, d.Versions[0]) + "/one", "", nil},
			{"GET", path, "", nil},
			{"PATCH", path + "/one?fieldManager=applier&force=true", "application/apply-patch+yaml", d.Object(version, "one")},
			{"GET", "/openapi/v3/apis/" + d.Group + "/" + version, "", nil},
		} {
			if _, err := c.do(r.method, r.path, r.contentType, "", r.body); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	used = processorTime(m.s.Pid()) - used
	m.report("... used", "%v, cpu %v each; at once %.0f MB", took.Round(time.Millisecond), (used / time.Duration(len(m.all))).Round(10*time.Microsecond), resident(m.s.Pid()))
	return profiled()
}

// documents changes one definition repeatedly, and reads the OpenAPI documents of kubectl and controllers after
// each change.
func (m *manyKinds) documents() error {
	c, err := newClientOver(m.s, true)
	if err != nil {
		return err
	}
	c.gzip = true
	d := m.all[0]
	for _, of := range []struct{ name, path, accept string }{
		{"OpenAPI v3, the index", "/openapi/v3", ""},
		{"OpenAPI v3, its group", "/openapi/v3/apis/" + d.Group + "/" + d.Versions[0], ""},
		{"OpenAPI v2, protobuf", "/openapi/v2", openAPI2Form},
		{"OpenAPI v2, JSON", "/openapi/v2", ""},
	} {
		var first, rest, took time.Duration
		const changes = 3
		for i := range 1 + changes {
			if _, err := c.do("PATCH", definitionsPath+"/"+d.Name, "application/merge-patch+json", "", fmt.Appendf(nil, `{"spec":{"names":{"categories":["c%d%d"]}}}`, len(of.name), i)); err != nil {
				return err
			}
			time.Sleep(200 * time.Millisecond) // until it is served
			used, began := processorTime(m.s.Pid()), time.Now()
			if _, err := c.do("GET", of.path, "", of.accept, nil); err != nil {
				return err
			}
			used = processorTime(m.s.Pid()) - used
			if i == 0 {
				first = used
				continue
			}
			rest, took = rest+used, took+time.Since(began)
		}
		m.report("... "+of.name, "first cpu %v; after a change cpu %v, %v by the clock", first, (rest / changes).Round(time.Millisecond), (took / changes).Round(time.Millisecond))
		m.record.Add(record.Of("a definition of many", of.name+" after a change", "ms", record.Lower, float64((rest/changes).Microseconds())/1000))
	}
	return nil
}

// rest weighs the server after a pause of definitionsRest.
func (m *manyKinds) rest() error {
	now, err := calm(m.s.Pid())
	if err != nil {
		return err
	}
	m.weigh("after use", now)
	time.Sleep(definitionsRest)
	profiled := profile(m.s, time.Second)
	if now, err = calm(m.s.Pid()); err != nil {
		return err
	}
	m.weigh("after use and a rest", now)
	return profiled()
}
