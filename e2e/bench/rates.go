package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/record"
	"github.com/rowlock/rowlock/e2e/harness"
)

func measureStart(e *env) error {
	s, stop, err := e.start()
	if err != nil {
		return err
	}
	defer stop()
	time.Sleep(2 * time.Second)
	e.figure(record.Of("start", "resident, idle and empty", "MB", record.Lower, resident(s.Pid())))
	if err := fill(s, 10000, configMaps, func(i int) []byte { return configMap(fmt.Sprintf("c%d", i), 1000) }); err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	began := time.Now()
	again, err := s.Again(e.ctx)
	if err != nil {
		return err
	}
	defer again.Kill()
	e.figure(record.Of("start", "ready with 10,000 objects", "ms", record.Lower, millis(time.Since(began))))
	e.figure(record.Of("start", "resident with 10,000 objects", "MB", record.Lower, resident(again.Pid())))
	return nil
}

func measureCreate(e *env) error {
	s, stop, err := e.start()
	if err != nil {
		return err
	}
	defer stop()
	account(s)
	for _, n := range []int{1, 32} {
		r, err := drive(s, n, e.seconds, func(c *client, w, i int) (int64, error) {
			return c.do("POST", configMaps, "application/json", "", configMap(fmt.Sprintf("n%d-w%d-%d", n, w, i), 1000))
		})
		if err != nil {
			return err
		}
		name := fmt.Sprintf("create 1 KB ConfigMaps, %d clients", n)
		e.report(name, "%v", r)
		e.rated(name, r)
	}
	r, err := drive(s, 32, e.seconds, func(c *client, w, i int) (int64, error) {
		return c.do("POST", pods, "application/json", "", pod(fmt.Sprintf("w%d-%d", w, i), "", "a"))
	})
	if err != nil {
		return err
	}
	e.report("create 5 KB Pods, 32 clients", "%v", r)
	e.rated("create 5 KB Pods, 32 clients", r)
	return nil
}

func measureGet(e *env) error {
	s, stop, err := e.start()
	if err != nil {
		return err
	}
	defer stop()
	account(s)
	c, err := newClient(s)
	if err != nil {
		return err
	}
	if _, err := c.do("POST", pods, "application/json", "", pod("p", "n1", "a")); err != nil {
		return err
	}
	size, err := c.do("GET", pods+"/p", "", "", nil)
	if err != nil {
		return err
	}
	r, err := drive(s, 16, e.seconds, func(c *client, _, _ int) (int64, error) { return c.do("GET", pods+"/p", "", "", nil) })
	if err != nil {
		return err
	}
	bare, err := e.bare(s, 16, size)
	if err != nil {
		return err
	}
	e.report(fmt.Sprintf("get a Pod of %d bytes, 16 clients", size), "%v   %.0f%% of a bare server", r, 100*r.rate/bare.rate)
	e.rated("get a Pod, 16 clients", r)
	e.record.Add(record.Of("of a bare server", "get a Pod, 16 clients", "%", record.Higher, 100*r.rate/bare.rate))
	return nil
}

// bare measures a plain Go TLS server in this process that sends answers of size bytes.
func (e *env) bare(s *harness.Server, clients int, size int64) (result, error) {
	cert, err := tls.LoadX509KeyPair(filepath.Join(s.DataDir, "serving.crt"), filepath.Join(s.DataDir, "serving.key"))
	if err != nil {
		return result{}, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return result{}, err
	}
	body := make([]byte, size)
	hs := &http.Server{TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		_, _ = w.Write(body)
	})}
	if !overHTTP2 {
		hs.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	go func() { _ = hs.ServeTLS(l, "", "") }()
	defer hs.Close()
	defer func(dir string) { profiles.dir = dir }(profiles.dir)
	profiles.dir = "" // the server is this process
	other := *s
	other.URL = "https://" + l.Addr().String()
	return drive(&other, clients, e.seconds, func(c *client, _, _ int) (int64, error) { return c.do("GET", "/", "", "", nil) })
}

func measureLeases(e *env) error {
	s, stop, err := e.start()
	if err != nil {
		return err
	}
	defer stop()
	r, err := drive(s, 32, e.seconds, func(c *client, w, i int) (int64, error) {
		name := fmt.Sprintf("node-%d", w)
		if i == 0 {
			return c.do("POST", leases, "application/json", "", lease(name))
		}
		return 0, renew(c, leases+"/"+name)
	})
	if err != nil {
		return err
	}
	e.report("renew Leases, 32 clients", "%v", r)
	e.rated("renew Leases, 32 clients", r)
	return nil
}

func measureStatus(e *env) error {
	s, stop, err := e.start()
	if err != nil {
		return err
	}
	defer stop()
	account(s)
	if err := fill(s, 320, pods, func(i int) []byte { return pod(fmt.Sprintf("p%d", i), "n1", "a") }); err != nil {
		return err
	}
	r, err := drive(s, 32, e.seconds, func(c *client, w, i int) (int64, error) {
		return 0, patchStatus(c, fmt.Sprintf("%s/p%d/status", pods, w*10+i%10), hostIP, i)
	})
	if err != nil {
		return err
	}
	e.report("patch Pod status, 32 clients", "%v", r)
	e.rated("patch Pod status, 32 clients", r)
	return nil
}
