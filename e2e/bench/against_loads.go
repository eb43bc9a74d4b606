package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Numbers of objects.
const (
	contestPods   = 5000
	contestNodes  = 500
	contestApps   = 50
	contestPatch  = 320 // Pods whose status is patched
	contestLeases = 32
)

// load is a kind of request. prepare creates the objects that it needs, once for each server.
type load struct {
	name    string
	clients int
	prepare func(c *againstRun, t *target) error
	one     func(c *againstRun, client *client, at requestID) (int64, error)
}

var loads = []load{
	{"create 1 KB ConfigMaps, 1 client", 1, nil, createConfigMap("one")},
	{"create 1 KB ConfigMaps, 32 clients", 32, nil, createConfigMap("many")},
	{"create 5 KB Pods, 32 clients", 32, nil, func(c *againstRun, client *client, at requestID) (int64, error) {
		return client.do("POST", c.at("pods"), "application/json", "", pod(at.name("new"), "", "a"))
	}},
	{"renew Leases, 32 clients", contestLeases, makeLeases, func(c *againstRun, client *client, at requestID) (int64, error) {
		return 0, renew(client, fmt.Sprintf("%s/node-%d", c.leases(), at.worker))
	}},
	{"get a Pod, 16 clients", 16, makePods, func(c *againstRun, client *client, at requestID) (int64, error) {
		return client.do("GET", fmt.Sprintf("%s/p%d", c.at("pods"), (at.worker*31+at.n)%contestPods), "", "", nil)
	}},
	{"list 5,000 Pods as JSON, 4 clients", 4, makePods, listed("", "", false)},
	{"list 5,000 Pods as JSON, compressed, 4 clients", 4, makePods, listed("", "", true)},
	{"list 5,000 Pods as Protobuf, 4 clients", 4, makePods, listed("", protobufType, false)},
	{"list 5,000 Pods as Table, 4 clients", 4, makePods, listed("", tableType, false)},
	{"list by label (2%), 4 clients", 4, makePods, listed("?labelSelector=app%3Da7", "", false)},
	{"list by node name (10 Pods), 4 clients", 4, makePods, listed("?fieldSelector=spec.nodeName%3Dn7", "", false)},
	{"a page of 500, 4 clients", 4, makePods, func(c *againstRun, client *client, _ requestID) (int64, error) {
		return client.do("GET", c.at("pods")+"?limit=500", "", "", nil)
	}},
	{"patch Pod status, 32 clients", 32, makePods, func(c *againstRun, client *client, at requestID) (int64, error) {
		pod := fmt.Sprintf("%s/p%d/status", c.at("pods"), at.worker*10+at.n%10)
		return 0, patchStatus(client, pod, hostIP, at.count())
	}},
	{"apply 1 KB ConfigMaps, 32 clients", 32, nil, func(c *againstRun, client *client, at requestID) (int64, error) {
		name := fmt.Sprintf("applied-%d-%d", at.worker, at.n%applyEach)
		return 0, apply(client, c.at("configmaps"), name, appliedConfigMap(name, at.count()))
	}},
}

func createConfigMap(prefix string) func(*againstRun, *client, requestID) (int64, error) {
	return func(c *againstRun, client *client, at requestID) (int64, error) {
		return client.do("POST", c.at("configmaps"), "application/json", "", configMap(at.name(prefix), 1000))
	}
}

func listed(query, accept string, gzip bool) func(*againstRun, *client, requestID) (int64, error) {
	return func(c *againstRun, client *client, _ requestID) (int64, error) {
		client.gzip = gzip
		return client.do("GET", c.at("pods")+query, "", accept, nil)
	}
}

func makeLeases(c *againstRun, t *target) error {
	client := t.client(overHTTP2)
	for i := range contestLeases {
		if _, err := client.do("POST", c.leases(), "application/json", "", lease(fmt.Sprintf("node-%d", i))); err != nil {
			return err
		}
	}
	return nil
}

// makePods creates the Pods for reads once, and deletes those of the create load, whose number differs between
// servers.
func makePods(c *againstRun, t *target) error {
	if c.filled[t] {
		return nil
	}
	c.filled[t] = true
	client := t.client(overHTTP2)
	if _, err := client.do("DELETE", c.at("pods")+"?gracePeriodSeconds=0", "", "", nil); err != nil {
		return err
	}
	return t.fill(contestPods, c.at("pods"), func(i int) []byte {
		return pod(fmt.Sprintf("p%d", i), fmt.Sprintf("n%d", i%contestNodes), fmt.Sprintf("a%d", i%contestApps))
	})
}

// watchers measures the delay from the start of a write to its event, with 500 watches and 50 creates of
// ConfigMaps a second, on each server in turns.
func (c *againstRun) watchers() error {
	results := make([][]result, len(c.all))
	for round := range max(1, c.pairs) {
		for i, t := range c.all {
			r, err := c.watched(t, round)
			if err != nil {
				return fmt.Errorf("watchers: %s: %w", t.name, err)
			}
			results[i] = append(results[i], r)
		}
	}
	c.compareAll("500 watchers, 50 events/s, from write to arrival", results)
	return nil
}

func (c *againstRun) watched(t *target, round int) (r result, err error) {
	writer := t.client(false)
	from, err := revision(writer)
	if err != nil {
		return r, err
	}
	get, err := eachInGoroutine(fanWatchers, c.at("configmaps")+"?watch=1&resourceVersion="+from, func() (*client, error) { return t.client(overHTTP2), nil })
	if err != nil {
		return r, err
	}
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() { all, failed = get() })
	t.lookBehind()
	var used time.Duration
	_, err = sendEvents(writer, c.at("configmaps"), fmt.Sprintf("%s-%d-", "e", round), func() { used = t.used() })
	wg.Wait()
	if err := errors.Join(err, failed); err != nil {
		return r, err
	}
	if want := fanWatchers * (fanWarm + fanEvents); len(all) != want {
		return r, fmt.Errorf("%d of %d events arrived", len(all), want)
	}
	r = resultOf(all, 0)
	r.rate, r.cpu = 0, (t.used()-used)/(fanEvents*fanWatchers)
	return r, nil
}

// refusal is an error that the server answered.
type refusal struct {
	what string
	code int
	text []byte
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s: %d %s: %s", r.what, r.code, http.StatusText(r.code), r.text)
}
