package main

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// measureGarbage measures policy long deleting the dependents of one owner takes, for each propagation policy,
// and the latencies of small writes at the same time.
func measureGarbage(e *env) error {
	for _, policy := range []string{"Background", "Foreground", "Orphan"} {
		if !e.only.MatchString("garbage " + policy) {
			continue
		}
		if err := e.garbage(policy); err != nil {
			return err
		}
	}
	return nil
}

const (
	owned       = "/api/v1/namespaces/owned/configmaps"
	pollGarbage = 100 * time.Millisecond
)

func (e *env) garbage(policy string) error {
	s, stop, err := e.start()
	if err != nil {
		return err
	}
	defer stop()
	c, err := newClient(s)
	if err != nil {
		return err
	}
	if err := grantClusterAdmin(c); err != nil {
		return err
	}
	if _, err := c.do("POST", "/api/v1/namespaces", "application/json", "", []byte(`{"metadata":{"name":"owned"}}`)); err != nil {
		return err
	}
	owner, err := e.owner(c)
	if err != nil {
		return err
	}
	began := time.Now()
	err = fill(s, e.objects, owned, func(i int) []byte {
		refs := fmt.Sprintf(`"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q,"blockOwnerDeletion":true}],"name":"d%07d"`, owner, i)
		return []byte(strings.Replace(string(configMap("d", 600)), `"name":"d"`, refs, 1))
	})
	if err != nil {
		return err
	}
	made := time.Since(began)
	before := resident(s.Pid())
	idle, err := e.runSmall(s, smallWriters)
	if err != nil {
		return err
	}
	began = time.Now()
	cpu := processorTime(s.Pid())
	if _, err := c.do("DELETE", owned+"/owner?propagationPolicy="+policy, "", "", nil); err != nil {
		return err
	}
	var over atomic.Bool
	var took time.Duration
	left := make(chan error, 1)
	profiled := profile(s, e.seconds)
	go func() {
		err := e.collected(s, policy)
		took = time.Since(began)
		over.Store(true)
		left <- err
	}()
	loaded, err := runSmallUntil(s, smallWriters, over.Load)
	if waited := <-left; err == nil {
		err = waited
	}
	if err == nil {
		err = profiled()
	}
	if err != nil {
		return err
	}
	e.report(fmt.Sprintf("%s, %d dependents", policy, e.objects), "%.1f s, of which processors %.1f s   made in %.1f s   resident %.0f MB, before %.0f",
		took.Seconds(), (processorTime(s.Pid()) - cpu).Seconds(), made.Seconds(), resident(s.Pid()), before)
	for i, k := range smallWriters {
		e.report("  "+k.name, "idle p50 %v p99 %v   loaded p50 %v p99 %v", idle[i].p50, idle[i].p99, loaded[i].p50, loaded[i].p99)
	}
	return nil
}

// owner creates the owner and returns its UID.
func (e *env) owner(c *client) (uid string, err error) {
	resp, err := c.open("POST", owned, "application/json", "", configMap("owner", 10))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	_, rest, _ := strings.Cut(string(text), `"uid":"`)
	uid, _, found := strings.Cut(rest, `"`)
	if err == nil && !found {
		err = fmt.Errorf("no UID in %s", text)
	}
	return uid, err
}

// collected waits until the owner is gone, and unless they are orphaned, its dependents.
func (e *env) collected(s *harness.Server, policy string) error {
	c, err := newClient(s)
	if err != nil {
		return err
	}
	path, gone := owned+"?limit=1", `"items":[]`
	if policy == "Orphan" {
		path, gone = owned+"?fieldSelector=metadata.name%3Downer", `"items":[]`
	}
	for {
		resp, err := c.open("GET", path, "", "", nil)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
		if strings.Contains(string(text), gone) || policy != "Orphan" && strings.Contains(string(text), `"name":"kube-root-ca.crt"`) && !strings.Contains(string(text), `"continue"`) {
			return nil
		}
		time.Sleep(pollGarbage)
	}
}
