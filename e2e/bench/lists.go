package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	tableType    = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

func measureLists(e *env) error {
	s, stop, err := e.start()
	if err != nil {
		return err
	}
	defer stop()
	account(s)
	err = fill(s, 5000, pods, func(i int) []byte {
		return pod(fmt.Sprintf("p%d", i), fmt.Sprintf("n%d", i%500), fmt.Sprintf("a%d", i%50))
	})
	if err != nil {
		return err
	}
	e.report("resident with 5,000 Pods", "%.0f MB", resident(s.Pid()))
	for _, l := range []struct {
		name, query, accept string
		gzip                bool
	}{
		{"list 5,000 Pods as JSON", "", "", false},
		{"list 5,000 Pods as Protobuf", "", protobufType, false},
		{"list 5,000 Pods as Table", "", tableType, false},
		{"list by label (2%)", "?labelSelector=app%3Da7", "", false},
		{"list by node name (10 Pods)", "?fieldSelector=spec.nodeName%3Dn7", "", false},
		{"list 5,000 Pods as JSON, compressed", "", "", true},
		{"list 5,000 Pods as Protobuf, compressed", "", protobufType, true},
	} {
		if !e.only.MatchString(l.name) {
			continue
		}
		r, err := drive(s, 4, e.seconds, func(c *client, _, _ int) (int64, error) {
			c.gzip = l.gzip
			return c.do("GET", pods+l.query, "", l.accept, nil)
		})
		if err != nil {
			return err
		}
		e.report(l.name+", 4 clients", "%8.1f/s   alone %.1f/s   %.0f MB/s   %.0f KB each   p50 %v   cpu %v + %v",
			r.rate, r.alone(), r.bytes/1e6, r.bytes/r.rate/1e3, r.p50, r.cpu, r.own)
		e.rated(l.name+", 4 clients", r)
		if err := e.compareBare(s, r, 1); err != nil {
			return err
		}
	}
	if e.only.MatchString("walk") {
		r, err := drive(s, 4, e.seconds, func(c *client, _, _ int) (int64, error) { return walk(c, 500) })
		if err != nil {
			return err
		}
		e.report("walk 5,000 Pods in pages of 500, 4 clients", "%8.1f/s   alone %.1f/s   cpu %v + %v", r.rate, r.alone(), r.cpu, r.own)
		e.rated("walk 5,000 Pods in pages of 500, 4 clients", r)
		if err := e.compareBare(s, r, 10); err != nil {
			return err
		}
	}
	e.report("resident after all of it", "%.0f MB", resident(s.Pid()))
	return nil
}

// compareBare measures a bare server that sends as many bytes in as many answers as r counted.
func (e *env) compareBare(s *harness.Server, r result, answers float64) error {
	bare, err := e.bare(s, 4, int64(r.bytes/r.rate/answers))
	if err != nil {
		return err
	}
	e.report("  the same bytes from a bare server", "%8.1f/s   alone %.1f/s   of which %.0f%%, alone %.0f%%",
		bare.rate/answers, bare.alone()/answers, 100*r.rate*answers/bare.rate, 100*r.alone()*answers/bare.alone())
	return nil
}

// walk reads all pages of a list.
func walk(c *client, limit int) (int64, error) {
	var total int64
	token := ""
	for {
		n, next, err := page(c, fmt.Sprintf("%s?limit=%d&continue=%s", pods, limit, token))
		if total += n; err != nil || next == "" {
			return total, err
		}
		token = next
	}
}

// page reads a page, and returns its size and its continue token.
func page(c *client, path string) (int64, string, error) {
	resp, err := c.open("GET", path, "", "", nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	// The list's metadata precedes its items.
	n, err := io.ReadAtLeast(resp.Body, c.buf, 1024)
	if err != nil {
		return 0, "", err
	}
	var next string
	head, _, _ := bytes.Cut(c.buf[:n], []byte(`,"items":`))
	if _, rest, ok := bytes.Cut(head, []byte(`"continue":"`)); ok {
		token, _, _ := bytes.Cut(rest, []byte(`"`))
		next = string(token)
	}
	rest, err := c.drain(resp.Body)
	return int64(n) + rest, next, err
}
