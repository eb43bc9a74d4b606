//go:build unix

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"

	"github.com/rowlock/rowlock/e2e/harness"
)

// perConnection is the number of watches that share a connection.
const perConnection = 100

// watchers opens watches, many on each connection, and calls seen with each line of each until it returns false. The channel
// receives nil for each watch that seen has ended.
func watchers(ctx context.Context, s *harness.Server, many int, query string, opened func(), seen func(line []byte) (more bool, err error)) (<-chan error, error) {
	pool, err := s.CA()
	if err != nil {
		return nil, err
	}
	ended := make(chan error, many)
	var c *http.Client
	for i := range many {
		if i%perConnection == 0 {
			c = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
			resp, err := c.Get(s.URL + "/livez") // one handshake after the other
			if err != nil {
				return nil, err
			}
			resp.Body.Close()
		}
		c := c
		go func() {
			ended <- func() error {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/secrets?watch=1&"+query, nil)
				if err != nil {
					return err
				}
				req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
				resp, err := c.Do(req)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					return errors.New(resp.Status)
				}
				opened()
				lines := bufio.NewScanner(resp.Body)
				for lines.Scan() {
					if more, err := seen(lines.Bytes()); !more || err != nil {
						return err
					}
				}
				return errors.Join(errors.New("the watch ended"), lines.Err())
			}()
		}()
	}
	return ended, nil
}

const secrets = "/api/v1/namespaces/default/secrets"

// behind is the number of writes that the resuming watches have not seen.
const behind = 4000

// resume restarts a server, and then resumes watches from before many writes of before the restart.
func (m *measures) resume(ctx context.Context, store string) error {
	url := "sqlite:" + m.dir + "/resume.db"
	if store == "postgres" {
		pg, at, err := database(ctx)
		if err != nil {
			return err
		}
		defer pg.Stop()
		url = at
	}
	s, err := harness.Start(ctx, harness.Options{Store: url, Dir: m.dir, Args: []string{"--history-retention=10m"}})
	if err != nil {
		return err
	}
	defer func() { s.Kill() }()
	many, resumed, listed := min(m.watches, 1000), 0, 0
	var why error // of the last that had to list
	for round := range m.turns(20) {
		c, err := (&pair{m: m, all: [2]*harness.Server{s, s}}).client(0)
		if err != nil {
			return err
		}
		_, body, err := c.do(ctx, http.MethodGet, secrets+"?limit=1", "")
		var list metav1.PartialObjectMetadataList
		if err == nil {
			err = json.Unmarshal(body, &list)
		}
		if err != nil {
			return err
		}
		var writers sync.WaitGroup
		for g := range 16 {
			writers.Go(func() {
				for range behind / 16 {
					_ = c.until(ctx, http.StatusCreated, http.MethodPost, configMaps, fmt.Sprintf(`{"metadata":{"generateName":"behind-%d-"},"data":{"a":%q}}`, g, strings.Repeat("x", 500)))
				}
			})
		}
		writers.Wait()
		if err := s.Stop(); err != nil {
			return err
		}
		again, err := s.Again(ctx)
		if err != nil {
			return err
		}
		s = again
		began := time.Now()
		if c, err = (&pair{m: m, all: [2]*harness.Server{s, s}}).client(0); err != nil {
			return err
		}
		marker := fmt.Sprintf("marker-%d", round)
		if err := c.until(ctx, http.StatusCreated, http.MethodPost, secrets, named(marker)); err != nil {
			return err
		}
		ended, err := watchers(ctx, s, many, "resourceVersion="+list.ResourceVersion, func() {}, func(line []byte) (bool, error) {
			if strings.Contains(string(line[:min(len(line), 20)]), `"ERROR"`) {
				return false, errors.New(string(line))
			}
			return !strings.Contains(string(line), marker), nil
		})
		if err != nil {
			return err
		}
		for range many {
			if err := <-ended; err == nil {
				resumed++
			} else {
				listed++
				why = err
			}
		}
		m.took(fmt.Sprintf("%s: %d watches have resumed after a restart, %d writes behind", store, many, behind), time.Since(began))
	}
	m.count("%s: watches that resumed after a restart: %d, that had to list again: %d", store, resumed, listed)
	if listed > 0 {
		return fmt.Errorf("%d watches had to list again: %w", listed, why)
	}
	return nil
}

// rolling restarts two servers in turn while client-go reads, watches and writes.
func (m *measures) rolling(ctx context.Context) error {
	pg, url, err := database(ctx)
	if err != nil {
		return err
	}
	defer pg.Stop()
	p, err := m.pair(ctx, url)
	defer p.end()
	if err != nil {
		return err
	}
	var lists, requests, failed atomic.Int64
	config := &rest.Config{
		Host: p.all[0].URL, BearerToken: harness.AdminToken, TLSClientConfig: rest.TLSClientConfig{CAFile: p.all[0].DataDir + "/ca.crt"}, QPS: -1,
		// As a load balancer does: the first server that accepts the connection.
		Dial: func(ctx context.Context, network, _ string) (c net.Conn, err error) {
			for i := range p.all {
				if c, err = (&net.Dialer{}).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", p.all[(int(requests.Load())+i)%2].Port)); err == nil {
					return c, nil
				}
			}
			return nil, err
		},
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			return counted(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "s") && r.URL.Query().Get("watch") == "" {
					lists.Add(1)
				}
				return next.RoundTrip(r)
			})
		},
	}
	work, stop := context.WithCancel(ctx)
	defer stop()
	for range 10 {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		f := informers.NewSharedInformerFactory(client, 0)
		for _, i := range []cache.SharedIndexInformer{f.Core().V1().ConfigMaps().Informer(), f.Core().V1().Secrets().Informer(), f.Core().V1().Pods().Informer(), f.Core().V1().Nodes().Informer()} {
			go i.Run(work.Done())
			if !cache.WaitForCacheSync(work.Done(), i.HasSynced) {
				return ctx.Err()
			}
		}
	}
	var load sync.WaitGroup
	var first sync.Once
	for g := range 4 {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		load.Go(func() {
			maps := client.CoreV1().ConfigMaps("default")
			for n := 0; work.Err() == nil; n++ {
				name := fmt.Sprintf("rolling-%d-%d", g, n)
				err := asClientsDo(work, func() error {
					_, err := maps.Create(work, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
					if apierrors.IsAlreadyExists(err) { // of an attempt before
						err = nil
					}
					return err
				})
				if err == nil {
					err = asClientsDo(work, func() error {
						_, err := maps.Get(work, name, metav1.GetOptions{})
						return err
					})
				}
				requests.Add(2)
				if err != nil && work.Err() == nil {
					failed.Add(1)
					first.Do(func() { m.count("rolling restart: the first failed request: %v", err) })
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	before, restarts := lists.Load(), 0
	for round := range m.turns(1) {
		time.Sleep(200 * time.Millisecond)
		i := round % 2
		if err := p.all[i].Stop(); err != nil {
			return err
		}
		if err := p.start(ctx, i); err != nil {
			return err
		}
		restarts++
	}
	again := lists.Load() - before
	stop()
	load.Wait()
	m.count("rolling restarts of two servers: %d; requests: %d, failed: %d; lists of the 40 informers: %d", restarts, requests.Load(), failed.Load(), again)
	if failed.Load() > 0 {
		return fmt.Errorf("%d requests failed", failed.Load())
	}
	if again > 0 {
		return fmt.Errorf("informers listed again %d times", again)
	}
	return nil
}

// counted is a RoundTripper.
type counted func(*http.Request) (*http.Response, error)

func (f counted) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// asClientsDo tries a request again as controllers do: client-go has its own retries within each attempt.
func asClientsDo(ctx context.Context, request func() error) error {
	return retry.OnError(wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 5}, func(error) bool { return ctx.Err() == nil }, request)
}

// sigterm ends a server that has many watches.
func (m *measures) sigterm(ctx context.Context) error {
	o := harness.Options{Store: "sqlite:" + m.dir + "/sigterm.db", Dir: m.dir, Args: []string{"--max-watches-per-user=50000"}}
	for range m.turns(10) {
		s, err := harness.Start(ctx, o)
		if err != nil {
			return err
		}
		o = s.Options()
		var open sync.WaitGroup
		open.Add(m.watches)
		ended, err := watchers(ctx, s, m.watches, "resourceVersion=0", open.Done, func([]byte) (bool, error) { return true, nil })
		if err == nil {
			err = allOpen(ctx, &open, ended)
		}
		if err == nil {
			began := time.Now()
			err = s.Stop()
			m.took(fmt.Sprintf("SIGTERM: a server with %d watches exits", m.watches), time.Since(began))
		}
		s.Kill()
		if err != nil {
			return err
		}
		for range m.watches {
			<-ended
		}
	}
	return nil
}

// allOpen waits until all watches are open, or one has failed.
func allOpen(ctx context.Context, open *sync.WaitGroup, ended <-chan error) error {
	all := make(chan struct{})
	go func() {
		open.Wait()
		close(all)
	}()
	select {
	case <-all:
		return nil
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
