//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/rowlock/rowlock/e2e/harness"
)

// client sends requests, and counts and times their answers.
type client struct {
	base  string
	roots *x509.CertPool
	http  *http.Client
	limit *rate.Limiter

	mu       sync.Mutex
	counts   map[string]int
	times    map[string][]time.Duration // since the last sample
	failures map[string]*failure        // by what failed
}

func newClient(s *harness.Server, perSecond float64) (*client, error) {
	roots, err := s.CA()
	if err != nil {
		return nil, err
	}
	c := &client{base: s.URL, roots: roots, limit: rate.NewLimiter(rate.Limit(perSecond), 20), counts: map[string]int{}, times: map[string][]time.Duration{}, failures: map[string]*failure{}}
	c.http = c.fresh(true)
	return c, nil
}

// fresh returns an HTTP client with connections of its own, whose caller closes them.
func (c *client) fresh(two bool, certificates ...tls.Certificate) *http.Client {
	var protocols http.Protocols
	protocols.SetHTTP1(!two)
	protocols.SetHTTP2(two)
	return &http.Client{Transport: &http.Transport{Protocols: &protocols, DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: c.roots, Certificates: certificates}}}
}

// send sends a request as the administrator.
func (c *client) send(ctx context.Context, method, path, contentType, body string) (code int, answer []byte, err error) {
	return c.sendBy(ctx, c.http, harness.AdminToken, method, path, contentType, body)
}

func (c *client) sendBy(ctx context.Context, by *http.Client, token, method, path, contentType, body string) (code int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := by.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// The media types of bodies.
const (
	jsonType  = "application/json"
	mergeType = "application/merge-patch+json"
)

// do waits for its turn, sends a request, and counts it by its name if the answer has the code that is wanted. It returns the answer
// decoded, or nil.
func (c *client) do(ctx context.Context, name string, want int, method, path, contentType, body string) *object {
	if c.limit.Wait(ctx) != nil {
		return nil
	}
	began := time.Now()
	code, answer, err := c.send(ctx, method, path, contentType, body)
	took := time.Since(began)
	if ctx.Err() != nil {
		return nil
	}
	var o object
	if err == nil && code == want {
		err = json.Unmarshal(answer, &o)
	}
	if err != nil || code != want {
		c.fail(fmt.Sprintf("%s: %d instead of %d", name, code, want), err, answer)
		return nil
	}
	class := "writes"
	if method == http.MethodGet {
		if class = "gets"; strings.HasSuffix(o.Kind, "List") {
			class = "lists"
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[name]++
	c.times[class] = append(c.times[class], took)
	return &o
}

// object has the fields of an answer that the program reads.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items  []object        `json:"items"`
	Status json.RawMessage `json:"status"`
}

// issued is the status of an answer that has a credential.
type issued struct {
	Token       string `json:"token"`
	Certificate []byte `json:"certificate"`
}

func (o *object) issued() (i issued) {
	_ = json.Unmarshal(o.Status, &i) // without one there is no credential, which its use shows
	return i
}

func (c *client) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[name]++
}

// failure counts the failures of an operation, and holds the first one.
type failure struct {
	times int
	first string
}

// fail counts an answer that is wrong.
func (c *client) fail(what string, err error, answer []byte) {
	how := string(answer[:min(len(answer), 400)])
	if err != nil {
		how = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.failures[what]
	if f == nil {
		f = &failure{first: how}
		c.failures[what] = f
	}
	f.times++
}

// latency is that of a class of requests since the last sample, in seconds.
type latency struct {
	Name         string
	Median, High float64
}

func (c *client) latencies() (list []latency) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{"writes", "gets", "lists"} {
		t := c.times[name]
		if len(t) == 0 {
			continue
		}
		slices.Sort(t)
		list = append(list, latency{name, t[len(t)/2].Seconds(), t[min(len(t)-1, len(t)*99/100)].Seconds()})
		c.times[name] = t[:0]
	}
	return list
}
