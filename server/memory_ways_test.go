package server_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/operators"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestWaysOfMemory: whether the memory of values is used again or not, the same writes store, answer and
// tell watches the same.
func TestWaysOfMemory(t *testing.T) {
	want := everythingOf(t, objects.StandardMemory)
	for _, way := range []objects.Memory{objects.ReusedMemory, objects.ScrubbedMemory} {
		got := everythingOf(t, way)
		if len(got) != len(want) {
			t.Errorf("%s: %d objects, answers and watches instead of %d", way, len(got), len(want))
		}
		for of, texts := range want {
			if len(got[of]) != len(texts) {
				t.Errorf("%s, %s: %d instead of %d", way, of, len(got[of]), len(texts))
				continue
			}
			for i := range texts {
				if got[of][i] != texts[i] {
					t.Errorf("%s, %s, %d:\n%.2000s\ninstead of\n%.2000s", way, of, i, got[of][i], texts[i])
				}
			}
		}
	}
}

// everythingOf has writers write at the same time, each its own objects, and is all that came of it.
func everythingOf(t *testing.T, way objects.Memory) (all map[string][]string) {
	t.Helper()
	var seconds atomic.Int64
	s := servertest.Start(t, servertest.Plain(nil), func(c *server.Config) {
		c.Memory = way
		c.Clock = func() time.Time { return time.Unix(1_800_000_000+seconds.Add(1), 0) }
	})
	const writers, rounds = 4, 6
	all = map[string][]string{}
	var mu sync.Mutex
	var done sync.WaitGroup
	for w := range writers {
		done.Go(func() {
			o := script{s: s, namespace: fmt.Sprint("n", w)}
			o.definition(w)
			for i := range rounds {
				o.round(w, i)
			}
			mu.Lock()
			defer mu.Unlock()
			all["answers of "+o.namespace] = o.answers
		})
	}
	done.Wait()
	changes, err := s.Store.Changes(t.Context(), 0, 1<<20, false)
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]int{}
	for _, c := range changes {
		written[c.Key.Resource]++
		if strings.HasPrefix(c.Key.Namespace, "n") || c.Key.Resource == "customresourcedefinitions.apiextensions.k8s.io" {
			key := "stored " + c.Key.Resource + "/" + c.Key.Namespace + "/" + plain(c.Key.Name)
			all[key] = append(all[key], fmt.Sprint(c.Deleted, " ", plain(string(c.Value))))
		}
	}
	for kind, resource := range map[string]string{"/api/v1/configmaps": "configmaps", "/api/v1/pods": "pods", "/apis/apps/v1/deployments": "deployments.apps"} {
		var lines []string
		for last := 1; len(lines) < written[resource] && last <= 64; last *= 2 { // seconds: a busy machine may not send all in one
			lines = slices.Collect(strings.Lines(watched(t, s, fmt.Sprintf("%s?watch=true&resourceVersion=1&timeoutSeconds=%d", kind, last))))
		}
		if len(lines) != written[resource] || len(lines) == 0 {
			t.Errorf("%s: %s: %d events of %d changes", way, kind, len(lines), written[resource])
		}
		for _, line := range lines {
			of := "events of " + kind + " " + namespaceIn.FindString(line)
			all[of] = append(all[of], plain(line))
		}
		items := strings.SplitAfter(plain(string(s.Must("GET", kind, ""))), `{"metadata":`)
		slices.SortFunc(items, cmp.Compare[string])
		all["list of "+kind] = items
	}
	return all
}

var (
	namespaceIn = regexp.MustCompile(`"namespace":"n\d"`)
	// what differs each time
	volatile = regexp.MustCompile(`"resourceVersion":"\d+",?|[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\dT[0-9:.]+Z|(generated-)[a-z0-9]{5}`)
)

func plain(text string) string { return volatile.ReplaceAllString(text, "$1") }

// script is one writer, and what it was answered.
type script struct {
	s         *servertest.Server
	namespace string
	answers   []string
}

func (o *script) do(method, path, contentType, body string) {
	r, err := http.NewRequestWithContext(context.Background(), method, o.s.URL+path, strings.NewReader(body))
	if err == nil {
		r.Header.Set("Content-Type", contentType)
		var answer *http.Response
		if answer, err = o.s.Client.Do(r); err == nil {
			var text []byte
			text, err = io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			o.answers = append(o.answers, fmt.Sprint(method, " ", path, ": ", answer.StatusCode, " ", plain(string(text))))
		}
	}
	if err != nil {
		o.answers = append(o.answers, fmt.Sprint(method, " ", path, ": ", err))
	}
}

const (
	asJSON      = "application/json"
	asMerge     = "application/merge-patch+json"
	asStrategic = "application/strategic-merge-patch+json"
	asPatch     = "application/json-patch+json"
	asApply     = "application/apply-patch+yaml"
)

// definition writes a definition whose status is patched without its schemas.
func (o *script) definition(w int) {
	var d *operators.Definition
	for all, i := operators.New(40), 1; w >= 0; i++ {
		var err error
		if d, err = all.At(i); err != nil {
			o.answers = append(o.answers, err.Error())
			return
		}
		if len(d.Body) < 60<<10 { // what is larger has a way of its own
			w--
		}
	}
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	o.do("POST", path, asJSON, string(d.Body))
	for i := range 3 {
		o.do("PATCH", path+"/"+d.Name+"/status", asMerge, fmt.Sprintf(`{"status":{"conditions":[{"type":"A","status":"True","reason":"r%d"}]}}`, i))
	}
	o.do("PATCH", path+"/"+d.Name+"/status", asMerge, `{"status":{"conditions":1}}`)
	last := &o.answers[len(o.answers)-1] // it says the whole object, quoted
	*last = (*last)[:min(300, len(*last))]
}

// round writes objects in all the ways there are.
func (o *script) round(w, i int) {
	maps, pods := "/api/v1/namespaces/"+o.namespace+"/configmaps", "/api/v1/namespaces/"+o.namespace+"/pods"
	length := (i*i*977 + w*901) % 2000
	if i%4 == 3 {
		length += 31_000 // some are too long to be given back
	}
	long := strings.Repeat(string(rune('p'+w)), length)
	name := fmt.Sprint("m", i%5)
	object := func(meta, data string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"` + meta + `},"data":{` + data + `}}`
	}
	o.do("POST", maps, asJSON, object("", `"a":"`+long+`"`))
	o.do("PUT", maps+"/"+name, asJSON, object("", fmt.Sprintf(`"a":"%s%d"`, long, i)))
	o.do("PUT", maps+"/"+name, asJSON, object("", fmt.Sprintf(`"a":"%s%d"`, long, i))) // nothing new
	o.do("PUT", maps+"/"+name+"?dryRun=All", asJSON, object("", `"a":"dry"`))
	o.do("PUT", maps+"/"+name, asJSON, object(`,"resourceVersion":"1"`, `"a":"never"`))
	o.do("PUT", maps+"/"+name, asJSON, object("", `"not a key":"x"`))
	o.do("PATCH", maps+"/"+name, asMerge, fmt.Sprintf(`{"data":{"m":"%d"}}`, i))
	o.do("PATCH", maps+"/"+name, asStrategic, fmt.Sprintf(`{"metadata":{"labels":{"l":"%d"}},"data":{"s":"%s"}}`, i, long))
	o.do("PATCH", maps+"/"+name, asPatch, `[{"op":"add","path":"/data/p","value":"q"},{"op":"remove","path":"/data/s"}]`)
	for range 2 {
		o.do("PATCH", maps+"/"+name+"?fieldManager=f&force=true", asApply, object("", fmt.Sprintf(`"y":"%s%d"`, long, i)))
	}
	o.do("POST", maps, asJSON, `{"metadata":{"generateName":"generated-"},"data":{"a":"`+long+`"}}`)

	pod := fmt.Sprint("p", i)
	o.do("POST", pods, asJSON, `{"metadata":{"name":"`+pod+`","annotations":{"a":"`+long+`"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	o.do("POST", pods+"/"+pod+"/binding", asJSON, `{"target":{"kind":"Node","name":"somewhere"}}`)
	o.do("PATCH", pods+"/"+pod+"/status", asMerge, fmt.Sprintf(`{"status":{"message":"m%d"}}`, i))
	o.do("PATCH", pods+"/"+pod+"/status", asStrategic, `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	o.do("DELETE", pods+"/"+pod, asJSON, `{"gracePeriodSeconds":30}`)
	if i%2 == 0 {
		o.do("DELETE", pods+"/"+pod, asJSON, `{"gracePeriodSeconds":0}`)
	}

	deployments := "/apis/apps/v1/namespaces/" + o.namespace + "/deployments"
	if i == 0 {
		o.do("POST", deployments, asJSON, `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	}
	o.do("PATCH", deployments+"/d/scale", asMerge, fmt.Sprintf(`{"spec":{"replicas":%d}}`, i))
	o.do("PATCH", deployments+"/d/status", asMerge, fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, i))

	if i%2 == 1 {
		o.do("PATCH", maps+"/"+name, asMerge, `{"metadata":{"finalizers":["example.com/f"]}}`)
		o.do("DELETE", maps+"/"+name, asJSON, "")
		o.do("PATCH", maps+"/"+name, asMerge, `{"metadata":{"finalizers":null}}`)
	}
}
