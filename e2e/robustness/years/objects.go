//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

func (w *worker) create(ctx context.Context, name, path, body string) bool {
	return w.client.do(ctx, name, http.StatusCreated, http.MethodPost, path, jsonType, body) != nil
}

// patch changes an object as most controllers do, without its resource version.
func (w *worker) patch(ctx context.Context, name, path, body string) bool {
	return w.client.do(ctx, name, http.StatusOK, http.MethodPatch, path, mergeType, body) != nil
}

func (w *worker) erase(ctx context.Context, name, path string) bool {
	return w.client.do(ctx, name, http.StatusOK, http.MethodDelete, path, "", "") != nil
}

// setup creates the worker's share of the objects that stay.
func (w *worker) setup(ctx context.Context) {
	for i := w.number; i < w.nodes; i += workers {
		w.create(ctx, "create", nodesPath, fmt.Sprintf(`{"metadata":{"name":"node-%d","labels":{"zone":"z%d"}}}`, i, i%3))
		w.create(ctx, "create", leasesPath, fmt.Sprintf(`{"metadata":{"name":"node-%d"},"spec":{"holderIdentity":"node-%d","leaseDurationSeconds":40}}`, i, i))
	}
	for i := range slicesEach {
		w.create(ctx, "create", slicesPath, fmt.Sprintf(`{"metadata":{"name":"slice-%d","labels":{"kubernetes.io/service-name":"s"}},"addressType":"IPv4","endpoints":[]}`, w.number+workers*i))
	}
	for i := range configsEach {
		w.create(ctx, "create", loadPath+"/configmaps", fmt.Sprintf(`{"metadata":{"name":"config-%d"},"data":{"text":%q}}`, w.number+workers*i, w.text(600)))
	}
	for i := range cardsEach {
		w.create(ctx, "create", cardsPath, fmt.Sprintf(`{"apiVersion":"years.example.com/v1","kind":"Card","metadata":{"name":"card-%d"},"spec":{"n":1}}`, w.number+workers*i))
	}
	for i := range w.pods { // of all ages, as in a cluster
		for range w.random.IntN(podStates) {
			w.podStep(ctx, &w.pods[i])
		}
	}
	if w.number < leads {
		w.create(ctx, "create", leadsPath, fmt.Sprintf(`{"metadata":{"name":"lead-%d"},"spec":{"holderIdentity":"a"}}`, w.number))
	}
}

// text is something that does not compress to nothing.
func (w *worker) text(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz012345"[w.random.IntN(32)]
	}
	return string(b)
}

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }

func (w *worker) lease(ctx context.Context) {
	w.patch(ctx, "lease", fmt.Sprintf("%s/node-%d", leasesPath, w.mine(w.nodes)), fmt.Sprintf(`{"spec":{"renewTime":%q}}`, now()))
}

// leads are the Leases of controllers.
const leads = 5

func (w *worker) lead(ctx context.Context) {
	w.patch(ctx, "lead", fmt.Sprintf("%s/lead-%d", leadsPath, w.random.IntN(leads)), fmt.Sprintf(`{"spec":{"renewTime":%q}}`, now()))
}

func (w *worker) nodeStatus(ctx context.Context) {
	var conditions []string
	for _, kind := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		conditions = append(conditions, fmt.Sprintf(`{"type":%q,"status":"True","lastHeartbeatTime":%q,"reason":"Kubelet","message":"since a while"}`, kind, time.Now().UTC().Format(time.RFC3339)))
	}
	w.patch(ctx, "node status", fmt.Sprintf("%s/node-%d/status", nodesPath, w.mine(w.nodes)),
		fmt.Sprintf(`{"status":{"allocatable":{"memory":"%dKi"},"conditions":[%s]}}`, 1_000_000+w.random.IntN(1000), strings.Join(conditions, ",")))
}

func (w *worker) event(ctx context.Context) {
	w.create(ctx, "event", loadPath+"/events", fmt.Sprintf(`{"metadata":{"name":%q},"involvedObject":{"kind":"Pod","namespace":"load","name":"web-%d"},"reason":"Pulled","message":"image is there","type":"Normal","count":1}`,
		w.fresh("event"), w.random.IntN(w.settings.pods)))
}

func (w *worker) slice(ctx context.Context) {
	var endpoints []string
	for range 1 + w.random.IntN(20) {
		endpoints = append(endpoints, fmt.Sprintf(`{"addresses":["10.0.%d.%d"],"conditions":{"ready":true}}`, w.random.IntN(256), w.random.IntN(256)))
	}
	w.patch(ctx, "endpoint slice", fmt.Sprintf("%s/slice-%d", slicesPath, w.mine(workers*slicesEach)), `{"endpoints":[`+strings.Join(endpoints, ",")+`]}`)
}

func (w *worker) config(ctx context.Context) {
	w.patch(ctx, "config map", fmt.Sprintf("%s/configmaps/config-%d", loadPath, w.mine(workers*configsEach)), fmt.Sprintf(`{"data":{"text":%q}}`, w.text(600)))
}

func (w *worker) card(ctx context.Context) {
	w.patch(ctx, "custom object", fmt.Sprintf("%s/card-%d", cardsPath, w.mine(workers*cardsEach)), fmt.Sprintf(`{"spec":{"n":%d,"text":%q}}`, w.random.IntN(1000), w.text(100)))
}

func (w *worker) get(ctx context.Context) {
	w.client.do(ctx, "get", http.StatusOK, http.MethodGet, fmt.Sprintf("%s/node-%d", nodesPath, w.random.IntN(w.nodes)), "", "")
}

// list reads a collection in pages.
func (w *worker) list(ctx context.Context) {
	paths := []string{nodesPath, leasesPath, loadPath + "/pods", loadPath + "/configmaps", cardsPath, loadPath + "/events"}
	path, token := paths[w.random.IntN(len(paths))], ""
	for {
		o := w.client.do(ctx, "list", http.StatusOK, http.MethodGet, path+"?limit=500&continue="+token, "", "")
		if o == nil {
			return
		}
		if token = o.Metadata.Continue; token == "" {
			return
		}
	}
}

// pod is a place for Pods, which live in it one after another, each with a name of its own.
type pod struct {
	slot, life, state int
}

// podStates is the number of states of a Pod: to be created, bound, given a status three times, and deleted.
const podStates = 6

// pod takes one of the worker's Pods a step on.
func (w *worker) pod(ctx context.Context) {
	if len(w.pods) == 0 {
		return
	}
	w.podStep(ctx, &w.pods[w.random.IntN(len(w.pods))])
}

func (w *worker) podStep(ctx context.Context, p *pod) {
	name := fmt.Sprintf("web-%d-%d", p.slot, p.life)
	path := loadPath + "/pods/" + name
	done := false
	switch p.state {
	case 0:
		done = w.create(ctx, "pod created", loadPath+"/pods", fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"app":"web","slot":"s%d"}},"spec":{"containers":[{"name":"web","image":"web:%d","env":[{"name":"A","value":"b"}],"resources":{"requests":{"cpu":"10m","memory":"10Mi"}}}]}}`,
			name, p.slot%20, p.life))
	case 1:
		done = w.create(ctx, "pod bound", path+"/binding", fmt.Sprintf(`{"metadata":{"name":%q},"target":{"kind":"Node","name":"node-%d"}}`, name, w.random.IntN(w.nodes)))
	case podStates - 1:
		done = w.erase(ctx, "pod deleted", path+"?gracePeriodSeconds=0")
	default:
		done = w.patch(ctx, "pod status", path+"/status", fmt.Sprintf(`{"status":{"phase":"Running","podIP":"10.%d.%d.%d","startTime":%q}}`, w.random.IntN(256), w.random.IntN(256), p.state, time.Now().UTC().Format(time.RFC3339)))
	}
	if !done {
		return
	}
	if p.state++; p.state == podStates {
		p.life, p.state = p.life+1, 0
	}
}
