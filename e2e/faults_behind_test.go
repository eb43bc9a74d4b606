package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestFeedFallsBehind keeps one of two servers from its database until the writes of the
// other are compacted. The server recovers by itself: its watches end with 410, and its
// reads and writes after that are right.
func TestFeedFallsBehind(t *testing.T) {
	t.Parallel()
	_, proxy, c := behindProxy(t)
	a := clients(t, c)
	for i := range 20 {
		want(t, a[i%2], 201, http.MethodPost, configMaps, "application/json", fmt.Sprintf(`{"metadata":{"name":"cm-%d"},"data":{"v":"1"}}`, i))
	}
	events := openWatch(t, a[1])

	proxy.Stall()
	for i := range 20 {
		if i%3 == 0 {
			want(t, a[0], 200, http.MethodDelete, fmt.Sprintf("%s/cm-%d", configMaps, i), "", "")
			continue
		}
		want(t, a[0], 200, http.MethodPatch, fmt.Sprintf("%s/cm-%d", configMaps, i), "application/merge-patch+json", `{"data":{"v":"2"}}`)
	}
	var made configMap
	if err := json.Unmarshal(want(t, a[0], 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"new"}}`), &made); err != nil {
		t.Fatal(err)
	}
	var done struct{}
	store(t, &done, "compact", "--store", c.store, "--to", made.Metadata.ResourceVersion)
	proxy.Resume()

	gone := false
	for deadline := time.After(patience); !gone; {
		select {
		case line, open := <-events:
			if !open {
				t.Fatal("the watch ended without 410")
			}
			if strings.Contains(line, `"ERROR"`) {
				if gone = strings.Contains(line, `"code":410`); !gone {
					t.Fatalf("the watch ended with %s", line)
				}
				continue
			}
			t.Errorf("after the gap the watch shows %s", line)
		case <-deadline:
			t.Fatal("the watch goes on as if it had missed nothing")
		}
	}
	want(t, a[1], 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"own"}}`)
	for _, query := range []string{"", "?resourceVersion=0"} {
		if one, two := contents(t, a[0], query), contents(t, a[1], query); one != two || !strings.Contains(two, "new=") {
			t.Errorf("one server has\n%s\nthe other\n%s", one, two)
		}
	}
	again := openWatch(t, a[1])
	want(t, a[0], 200, http.MethodPatch, configMaps+"/new", "application/merge-patch+json", `{"data":{"v":"3"}}`)
	select {
	case line := <-again:
		if !strings.Contains(line, `"MODIFIED"`) || !strings.Contains(line, `"new"`) {
			t.Errorf("a new watch shows %s", line)
		}
	case <-time.After(patience):
		t.Error("a new watch shows nothing")
	}
	want(t, a[1], 200, http.MethodGet, "/readyz/feed", "", "")
	if text := string(want(t, a[1], 200, http.MethodGet, "/metrics", "", "")); !strings.Contains(text, "\nrowlock_store_feed_reloads_total 1\n") {
		t.Error("no metric counts the reload")
	}
}

// TestPreconditionsBehind: a server that has not received another one's writes does not refuse a client that has, be it
// by version or by UID.
func TestPreconditionsBehind(t *testing.T) {
	t.Parallel()
	_, proxy, c := behindProxy(t)
	a := clients(t, c)
	var made struct {
		Metadata struct{ UID, ResourceVersion string }
	}
	// first sends a write to the first server, whose answer has the version that the second server does not know yet.
	first := func(method, path, contentType, body string, code int) {
		t.Helper()
		if err := json.Unmarshal(want(t, a[0], code, method, path, contentType, body), &made); err != nil {
			t.Fatal(err)
		}
	}
	object := func(data string) string {
		return fmt.Sprintf(`{"metadata":{"name":"a","uid":%q},"data":{"v":%q}}`, made.Metadata.UID, data)
	}
	anew := func() {
		t.Helper()
		made.Metadata.UID = ""
		first(http.MethodPost, configMaps, "application/json", object("1"), 201)
	}
	anew()
	want(t, a[1], 200, http.MethodGet, configMaps+"/a", "", "")
	if proxy.DropNotifications() == 0 {
		t.Fatal("no connection listens")
	}
	first(http.MethodPatch, configMaps+"/a", "application/merge-patch+json", `{"data":{"v":"2"}}`, 200)
	want(t, a[1], 200, http.MethodDelete, configMaps+"/a", "application/json", fmt.Sprintf(`{"preconditions":{"resourceVersion":%q}}`, made.Metadata.ResourceVersion))
	again := func() {
		t.Helper()
		anew()
		want(t, a[1], 200, http.MethodGet, configMaps+"/a", "", "")
		want(t, a[0], 200, http.MethodDelete, configMaps+"/a", "", "")
		anew()
	}
	again()
	want(t, a[1], 200, http.MethodDelete, configMaps+"/a", "application/json", fmt.Sprintf(`{"preconditions":{"uid":%q}}`, made.Metadata.UID))
	again()
	want(t, a[1], 200, http.MethodPut, configMaps+"/a", "application/json", object("3"))
	// The same for objects that name a recreated pod, or service account.
	const pods, accounts = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/serviceaccounts"
	eventually(t, "the account of pods", func() bool {
		code, _, err := a[0].do(t.Context(), http.MethodGet, accounts+"/default", "", "")
		return err == nil && code == 200
	})
	for i, meant := range []struct{ sub, body string }{
		{"/binding", `{"metadata":{"name":%[1]q,"uid":%[2]q},"target":{"name":"node"}}`},
		{"/eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%[1]q},"deleteOptions":{"preconditions":{"uid":%[2]q}}}`},
		{"/token", `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":%[1]q,"uid":%[2]q}}}`},
	} {
		name := fmt.Sprintf("p%d", i)
		body := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"i"}]}}`, name)
		first(http.MethodPost, pods, "application/json", body, 201)
		want(t, a[1], 200, http.MethodGet, pods+"/"+name, "", "")
		want(t, a[0], 200, http.MethodDelete, pods+"/"+name, "", "")
		made.Metadata.UID = ""
		first(http.MethodPost, pods, "application/json", body, 201)
		at := pods + "/" + name
		if meant.sub == "/token" {
			at = accounts + "/default"
		}
		want(t, a[1], 201, http.MethodPost, at+meant.sub, "application/json", fmt.Sprintf(meant.body, name, made.Metadata.UID))
	}
	// A pod that has ended needs no budget, and one of the same name that was made since does.
	want(t, a[0], 201, http.MethodPost, "/apis/policy/v1/namespaces/default/poddisruptionbudgets", "application/json", `{"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"x"}}}}`)
	const covered = `{"metadata":{"name":"p","labels":{"app":"x"}},"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"i"}]}}`
	phase := func(p string) {
		t.Helper()
		want(t, a[0], 200, http.MethodPatch, pods+"/p/status", "application/merge-patch+json", fmt.Sprintf(`{"status":{"phase":%q}}`, p))
	}
	want(t, a[0], 201, http.MethodPost, pods, "application/json", covered)
	phase("Succeeded")
	want(t, a[1], 200, http.MethodGet, pods+"/p", "", "")
	want(t, a[0], 200, http.MethodDelete, pods+"/p", "", "")
	want(t, a[0], 201, http.MethodPost, pods, "application/json", covered)
	phase("Running")
	want(t, a[1], 429, http.MethodPost, pods+"/p/eviction", "application/json", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`)
	// Preconditions that no server has ever met are refused.
	want(t, a[1], 409, http.MethodDelete, configMaps+"/a", "application/json", `{"preconditions":{"uid":"another"}}`)
	want(t, a[1], 409, http.MethodDelete, configMaps+"/a", "application/json", `{"preconditions":{"resourceVersion":"1"}}`)
}

// TestRefusalsBehind: a server does not refuse a write because of an object that another server has changed since.
func TestRefusalsBehind(t *testing.T) {
	t.Parallel()
	_, proxy, c := behindProxy(t)
	a := clients(t, c)
	const merge, jsonPatch, apply = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
	object := func(name, more string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}%s}`, name, more)
	}
	for _, name := range []string{"tested", "owned", "fixed"} {
		want(t, a[0], 201, http.MethodPost, configMaps+"?fieldManager=creator", "application/json", object(name, ""))
	}
	owned := configMaps + "/owned?fieldManager="
	want(t, a[0], 200, http.MethodPatch, owned+"first", apply, object("owned", `,"data":{"v":"1"}`))
	want(t, a[0], 200, http.MethodPatch, configMaps+"/fixed", merge, `{"immutable":true}`)
	for _, name := range []string{"tested", "owned", "fixed"} {
		want(t, a[1], 200, http.MethodGet, configMaps+"/"+name, "", "")
	}
	if proxy.DropNotifications() == 0 {
		t.Fatal("no connection listens")
	}
	const test = `[{"op":"test","path":"/data/v","value":"2"},{"op":"replace","path":"/data/v","value":"3"}]`
	want(t, a[0], 200, http.MethodPatch, configMaps+"/tested", merge, `{"data":{"v":"2"}}`)
	want(t, a[1], 200, http.MethodPatch, configMaps+"/tested", jsonPatch, test)
	want(t, a[1], 422, http.MethodPatch, configMaps+"/tested", jsonPatch, test)

	want(t, a[0], 200, http.MethodPatch, owned+"first", apply, object("owned", ""))
	want(t, a[1], 200, http.MethodPatch, owned+"second", apply, object("owned", `,"data":{"v":"2"}`))
	want(t, a[1], 409, http.MethodPatch, owned+"third", apply, object("owned", `,"data":{"v":"3"}`))

	want(t, a[0], 200, http.MethodDelete, configMaps+"/fixed", "", "")
	want(t, a[0], 201, http.MethodPost, configMaps, "application/json", object("fixed", ""))
	want(t, a[1], 200, http.MethodPut, configMaps+"/fixed", "application/json", object("fixed", `,"immutable":true,"data":{"v":"1"}`))
	want(t, a[1], 422, http.MethodPatch, configMaps+"/fixed", merge, `{"data":{"v":"2"}}`)
}

// TestUnchangedBehind: a write that would change nothing of what a server knows of an object, but something of what another server
// has made of it since, is done and not just acknowledged.
func TestUnchangedBehind(t *testing.T) {
	t.Parallel()
	_, proxy, c := behindProxy(t)
	a := clients(t, c)
	const merge, apply = "application/merge-patch+json", "application/apply-patch+yaml"
	object := func(v string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"v":%q}}`, v)
	}
	patch := func(v string) string { return fmt.Sprintf(`{"data":{"v":%q}}`, v) }
	want(t, a[0], 201, http.MethodPost, configMaps, "application/json", object("0"))
	want(t, a[1], 200, http.MethodGet, configMaps+"/a", "", "")
	if proxy.DropNotifications() == 0 {
		t.Fatal("no connection listens")
	}
	for n, w := range []struct {
		method, query, contentType string
		body                       func(v string) string
	}{
		{http.MethodPatch, "", merge, patch},
		{http.MethodPut, "", "application/json", object},
		{http.MethodPatch, "?fieldManager=m&force=true", apply, object},
	} {
		old, other := fmt.Sprint(n), fmt.Sprint("other-", n)
		want(t, a[1], 200, w.method, configMaps+"/a"+w.query, w.contentType, w.body(old))
		want(t, a[0], 200, http.MethodPatch, configMaps+"/a", merge, patch(other))
		answer := want(t, a[1], 200, w.method, configMaps+"/a"+w.query, w.contentType, w.body(old))
		for _, text := range [][]byte{answer, want(t, a[0], 200, http.MethodGet, configMaps+"/a", "", "")} {
			if !strings.Contains(string(text), fmt.Sprintf(`"v":%q`, old)) {
				t.Errorf("%s %s of %s is acknowledged, and the object is %s", w.method, w.contentType, old, text)
			}
		}
	}
	// An object that waits for a finalizer, and one of the same name that was made since.
	held := `{"metadata":{"name":"held","finalizers":["example.com/hold"]}}`
	want(t, a[1], 201, http.MethodPost, configMaps, "application/json", held)
	want(t, a[1], 200, http.MethodDelete, configMaps+"/held", "", "")
	want(t, a[0], 200, http.MethodPatch, configMaps+"/held", merge, `{"metadata":{"finalizers":null}}`)
	want(t, a[0], 201, http.MethodPost, configMaps, "application/json", held)
	want(t, a[1], 200, http.MethodDelete, configMaps+"/held", "", "")
	if text := want(t, a[0], 200, http.MethodGet, configMaps+"/held", "", ""); !strings.Contains(string(text), "deletionTimestamp") {
		t.Errorf("a delete is acknowledged, and the object is %s", text)
	}
}

// openWatch follows config maps from now on; a line is an event.
func openWatch(t *testing.T, a *api) <-chan string {
	t.Helper()
	var list configMapList
	if err := json.Unmarshal(want(t, a, 200, http.MethodGet, configMaps, "", ""), &list); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.s.URL+configMaps+"?watch=1&resourceVersion="+list.Metadata.ResourceVersion, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	resp, err := a.c.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		defer resp.Body.Close()
		for scanner := bufio.NewScanner(resp.Body); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return lines
}

// contents returns all config maps as one text.
func contents(t *testing.T, a *api, query string) string {
	t.Helper()
	code, body, err := a.do(context.Background(), http.MethodGet, configMaps+query, "", "")
	var list configMapList
	if err != nil || code != http.StatusOK || json.Unmarshal(body, &list) != nil {
		t.Fatalf("list: %d %v %s", code, err, body)
	}
	var text strings.Builder
	for _, item := range list.Items {
		fmt.Fprintf(&text, "%s=%s@%s\n", item.Metadata.Name, item.Data["v"], item.Metadata.ResourceVersion)
	}
	return text.String()
}
