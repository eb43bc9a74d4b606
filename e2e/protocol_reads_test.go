package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rowlock/rowlock/e2e/harness"
)

// post creates with an Accept header.
func (p *protocol) post(t *testing.T, path, accept, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	resp, err := p.raw.c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, readAll(t, resp)
}

func readAll(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const chunkedObjects = 117

func (p *protocol) templates(t *testing.T, ns string) {
	t.Helper()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := w; i < chunkedObjects; i += 4 {
				tpl := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("template-%04d", i)}, Template: podTemplate()}
				if _, err := p.core.PodTemplates(ns).Create(t.Context(), tpl, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// chunks: whatever the limit, pages of one version show everything once, in order, with the number of
// remaining objects; concurrent changes do not show.
func chunks(t *testing.T, p *protocol, ns string) {
	p.templates(t, ns)
	for _, limit := range []int64{1, 7, 39, 116, 117, 118} {
		o := metav1.ListOptions{Limit: limit}
		var names []string
		version := ""
		for page := 0; ; page++ {
			list, err := p.core.PodTemplates(ns).List(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if page == 0 && limit == 39 {
				if err := p.core.PodTemplates(ns).Delete(t.Context(), "template-0100", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range list.Items {
				names = append(names, list.Items[i].Name)
			}
			if version == "" {
				version = list.ResourceVersion
			}
			total := chunkedObjects
			if limit > 39 {
				total--
			}
			left := int64(total - len(names))
			switch {
			case list.ResourceVersion != version:
				t.Fatalf("limit %d: page %d is of version %s, the first of %s", limit, page, list.ResourceVersion, version)
			case (list.Continue != "") != (left > 0):
				t.Fatalf("limit %d: %d remain, token %q", limit, left, list.Continue)
			case left > 0 && (list.RemainingItemCount == nil || *list.RemainingItemCount != left):
				t.Fatalf("limit %d: %d remain, reported %v", limit, left, list.RemainingItemCount)
			}
			if o.Continue = list.Continue; o.Continue == "" {
				if len(names) != total || !slices.IsSorted(names) {
					t.Fatalf("limit %d: %d of %d, sorted %v", limit, len(names), total, slices.IsSorted(names))
				}
				break
			}
		}
	}
}

// lostChunks: once history is gone a token answers 410 with one that goes on in the
// newest state.
func lostChunks(t *testing.T, p *protocol, ns string) {
	for i := range 5 {
		p.configMap(t, ns, fmt.Sprintf("c%d", i), nil)
	}
	first, err := p.core.ConfigMaps(ns).List(t.Context(), metav1.ListOptions{Limit: 2, LabelSelector: ""})
	if err != nil {
		t.Fatal(err)
	}
	p.configMap(t, ns, "c9", nil)
	var expired error
	for end := time.Now().Add(patience); expired == nil && time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		_, expired = p.core.ConfigMaps(ns).List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.Continue})
	}
	if !apierrors.IsResourceExpired(expired) {
		t.Fatalf("a token of lost history: %v", expired)
	}
	token := expired.(apierrors.APIStatus).Status().ListMeta.Continue
	rest, err := p.core.ConfigMaps(ns).List(t.Context(), metav1.ListOptions{Limit: 50, Continue: token})
	if err != nil || len(rest.Items) != 4 || rest.Items[0].Name != "c2" || rest.ResourceVersion == first.ResourceVersion {
		t.Errorf("going on inconsistently: %+v %v", rest, err)
	}
	if _, err := p.core.ConfigMaps(ns).List(t.Context(), metav1.ListOptions{ResourceVersion: first.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}); !apierrors.IsResourceExpired(err) {
		t.Errorf("an exact list of lost history: %v", err)
	}
}

// listOptions: every combination of version, match, limit and token is refused for its
// reason or answered with as much as it asks for.
func listOptions(t *testing.T, p *protocol, ns string) {
	const objects, first, limit = 9, 3, 4
	for i := range objects {
		p.configMap(t, ns, fmt.Sprintf("o%d", i), nil)
	}
	maps := p.core.ConfigMaps(ns)
	for _, rv := range []string{"", "0", "valid", "invalid"} {
		for _, match := range []metav1.ResourceVersionMatch{"", "NotOlderThan", "Exact", "Sometimes"} {
			for _, token := range []string{"", "valid", "invalidToken"} {
				for _, n := range []int64{0, limit} {
					// History is short here: a version and a token of this moment.
					page, err := maps.List(t.Context(), metav1.ListOptions{Limit: first})
					if err != nil {
						t.Fatal(err)
					}
					o := metav1.ListOptions{ResourceVersion: rv, ResourceVersionMatch: match, Continue: token, Limit: n}
					if rv == "valid" {
						o.ResourceVersion = page.ResourceVersion
					}
					if token == "valid" {
						o.Continue = page.Continue
					}
					list, err := maps.List(t.Context(), o)
					if why := refusedList(rv, string(match), token); why != "" {
						if err == nil || !strings.Contains(err.Error(), why) {
							t.Errorf("version %q, match %q, token %q, limit %d: %v, want %q", rv, match, token, n, err, why)
						}
						continue
					}
					want := objects
					switch {
					case token != "" && n > 0:
						want = limit
					case token != "":
						want = objects - first
					case n > 0 && rv != "0":
						want = limit
					}
					if err != nil || len(list.Items) != want {
						t.Errorf("version %q, match %q, token %q, limit %d: %d items, want %d: %v", rv, match, token, n, len(list.Items), want, err)
					}
				}
			}
		}
	}
}

// refusedList returns the reason why a list is refused, or "".
func refusedList(rv, match, token string) string {
	switch {
	case rv == "" && match != "":
		return "resourceVersionMatch is forbidden unless resourceVersion is provided"
	case token != "" && match != "":
		return "resourceVersionMatch is forbidden when continue is provided"
	case match == "Sometimes":
		return "supported values"
	case match == "Exact" && rv == "0":
		return `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`
	case token == "invalidToken":
		return "continue key is not valid"
	case token != "" && rv != "" && rv != "0":
		return "specifying resource version is not allowed when using continue"
	case rv == "invalid":
		return "Invalid value"
	}
	return ""
}

// selectorWatches: watches with overlapping selectors; objects come into selections and
// leave them, and in the end into all of them, so that none has seen anything else before.
func selectorWatches(t *testing.T, p *protocol, ns string) {
	a := p.watch(t.Context(), t, ns, metav1.ListOptions{LabelSelector: "watch=a"})
	b := p.watch(t.Context(), t, ns, metav1.ListOptions{LabelSelector: "watch=b"})
	both := p.watch(t.Context(), t, ns, metav1.ListOptions{LabelSelector: "watch in (a,b)"})
	name := p.watch(t.Context(), t, ns, metav1.ListOptions{FieldSelector: "metadata.name=x"})
	p.configMap(t, ns, "x", map[string]string{"watch": "a"})
	p.change(t, ns, "x", "a", "1")
	p.change(t, ns, "x", "b", "2")
	p.change(t, ns, "x", "other", "3")
	p.change(t, ns, "x", "other", "4")
	p.change(t, ns, "x", "a", "5")
	p.configMap(t, ns, "y", map[string]string{"watch": "b"})
	p.delete(t, ns, "x")
	p.delete(t, ns, "y")
	p.configMap(t, ns, "x", map[string]string{"watch": "a"})
	p.change(t, ns, "x", "b", "6")
	for w, want := range map[watch.Interface]string{
		a:    "ADDED x=, MODIFIED x=1, DELETED x=1, ADDED x=5, DELETED x=5, ADDED x=, DELETED x=",
		b:    "ADDED x=2, DELETED x=2, ADDED y=, DELETED y=, ADDED x=6",
		both: "ADDED x=, MODIFIED x=1, MODIFIED x=2, DELETED x=2, ADDED x=5, ADDED y=, DELETED x=5, DELETED y=, ADDED x=, MODIFIED x=6",
		name: "ADDED x=, MODIFIED x=1, MODIFIED x=2, MODIFIED x=3, MODIFIED x=4, MODIFIED x=5, DELETED x=5, ADDED x=, MODIFIED x=6",
	} {
		got := strings.Join(events(t, w, strings.Count(want, ",")+1), ", ")
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// versionWatches: from a version, on from the last event, from now.
func versionWatches(t *testing.T, p *protocol, ns string) {
	cm := p.configMap(t, ns, "x", nil)
	first := p.change(t, ns, "x", "", "1")
	p.change(t, ns, "x", "", "2")
	p.delete(t, ns, "x")
	from := func(rv string, want ...string) string {
		w := p.watch(t.Context(), t, ns, metav1.ListOptions{ResourceVersion: rv})
		var got []string
		last := rv
		for range want {
			e, ok := <-w.ResultChan()
			if !ok {
				break
			}
			got = append(got, eventText(e))
			if o, ok := e.Object.(*corev1.ConfigMap); ok {
				last = o.ResourceVersion
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("from %s: %q, want %q", rv, got, want)
		}
		return last
	}
	from(cm.ResourceVersion, "MODIFIED x=1", "MODIFIED x=2", "DELETED x=2")
	second := from(first.ResourceVersion, "MODIFIED x=2")
	end := from(second, "DELETED x=2")
	p.configMap(t, ns, "y", nil)
	from(end, "ADDED y=")
	p.configMap(t, ns, "z", nil)
	for _, rv := range []string{"", "0"} {
		w := p.watch(t.Context(), t, ns, metav1.ListOptions{ResourceVersion: rv})
		p.change(t, ns, "z", "", "after "+rv)
		want := []string{"ADDED y=", "ADDED z=" + map[string]string{"0": "after "}[rv], "MODIFIED z=after " + rv}
		if got := events(t, w, 3); !slices.Equal(got, want) {
			t.Errorf("from %q: %q, want %q", rv, got, want)
		}
	}
}

// oneOrder: watches that start at any moment see the same events in the same order.
func oneOrder(t *testing.T, p *protocol, ns string) {
	const writes = 60
	start := p.configMap(t, ns, "first", nil)
	var writers, watchers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := range writes / 3 {
				name := fmt.Sprintf("o%d", (w+i)%5)
				_, err := p.core.ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
				if apierrors.IsAlreadyExists(err) {
					err = p.core.ConfigMaps(ns).Delete(t.Context(), name, metav1.DeleteOptions{})
				}
				if err != nil && !apierrors.IsNotFound(err) {
					t.Error(err)
				}
			}
		})
	}
	seen := make([][]string, 6)
	for i := range seen {
		watchers.Go(func() {
			time.Sleep(time.Duration(i) * 10 * time.Millisecond)
			w, err := p.core.ConfigMaps(ns).Watch(t.Context(), metav1.ListOptions{ResourceVersion: start.ResourceVersion, TimeoutSeconds: new(int64(60))})
			if err != nil {
				t.Error(err)
				return
			}
			defer w.Stop()
			for e := range w.ResultChan() {
				cm, ok := e.Object.(*corev1.ConfigMap)
				if !ok {
					t.Errorf("watch %d: %+v", i, e)
					return
				}
				seen[i] = append(seen[i], fmt.Sprintf("%s@%s", eventText(e), cm.ResourceVersion))
				if cm.Name == "last" {
					return
				}
			}
		})
	}
	writers.Wait()
	p.configMap(t, ns, "last", nil)
	watchers.Wait()
	for i := range seen {
		if !slices.Equal(seen[i], seen[0]) || len(seen[i]) == 0 {
			t.Errorf("watch %d saw\n%q\nthe first saw\n%q", i, seen[i], seen[0])
		}
	}
}

// watchList: initial events, the bookmark that ends them, and then what happens.
func watchList(t *testing.T, p *protocol, ns string) {
	for i := range 3 {
		p.configMap(t, ns, fmt.Sprintf("w%d", i), nil)
	}
	o := metav1.ListOptions{
		SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
	w := p.watch(t.Context(), t, ns, o)
	if got := strings.Join(events(t, w, 3), ", "); got != "ADDED w0=, ADDED w1=, ADDED w2=" {
		t.Errorf("initial events: %s", got)
	}
	mark := <-w.ResultChan()
	end, ok := mark.Object.(*corev1.ConfigMap)
	if mark.Type != watch.Bookmark || !ok || end.Annotations[metav1.InitialEventsAnnotationKey] != "true" || end.Name != "" {
		t.Fatalf("the end of the initial events: %+v", mark)
	}
	p.change(t, ns, "w1", "", "1")
	if got := events(t, w, 1); got[0] != "MODIFIED w1=1" {
		t.Errorf("after the bookmark: %q", got)
	}
	again := p.watch(t.Context(), t, ns, metav1.ListOptions{ResourceVersion: end.ResourceVersion})
	if got := events(t, again, 1); got[0] != "MODIFIED w1=1" {
		t.Errorf("from the bookmark: %q", got)
	}
	for _, bad := range []metav1.ListOptions{
		{SendInitialEvents: new(true)},
		{SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchExact, ResourceVersion: "1"},
		{ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, ResourceVersion: "1"},
		{SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, Continue: "x"},
	} {
		if _, err := p.core.ConfigMaps(ns).Watch(t.Context(), bad); !apierrors.IsInvalid(err) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := p.core.ConfigMaps(ns).List(t.Context(), o); !apierrors.IsInvalid(err) {
		t.Errorf("sendInitialEvents of a list: %v", err)
	}
}

// tables: of one object, of pages, of kinds without columns, and none of values other than objects.
func tables(t *testing.T, p *protocol, ns string) {
	const v1 = "application/json;as=Table;g=meta.k8s.io;v=v1"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: podTemplate().Spec}
	if _, err := p.core.Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 7 {
		p.configMap(t, ns, fmt.Sprintf("t%d", i), nil)
	}
	table := func(path, accept string) (out metav1.Table) {
		code, _, body := p.get(t, path, accept)
		if err := json.Unmarshal([]byte(body), &out); err != nil || code != 200 || out.Kind != "Table" {
			t.Fatalf("%s: %d %v %s", path, code, err, body)
		}
		return out
	}
	one := table("/api/v1/namespaces/"+ns+"/pods/p", v1)
	if len(one.Rows) != 1 || one.Rows[0].Cells[0] != "p" || len(one.Rows[0].Cells) != len(one.ColumnDefinitions) || len(one.ColumnDefinitions) < 5 {
		t.Errorf("a pod: %+v", one)
	}
	next, rows := "", 0
	for {
		page := table("/api/v1/namespaces/"+ns+"/configmaps?limit=3&continue="+next, v1)
		rows += len(page.Rows)
		if (page.RemainingItemCount == nil) != (page.Continue == "") {
			t.Errorf("a page: %+v", page.ListMeta)
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	if rows != 7 {
		t.Errorf("%d rows", rows)
	}
	if code, _, body := p.get(t, "/api/v1/namespaces/"+ns+"/configmaps", v1+"beta1, application/json"); code != 200 || !strings.Contains(body, `"meta.k8s.io/v1beta1"`) {
		t.Errorf("v1beta1: %d %s", code, body)
	}
	code, _, body := p.get(t, "/api/v1/namespaces/"+ns+"/configmaps?includeObject=Everything", v1)
	if code != 400 {
		t.Errorf("a bad includeObject: %d %s", code, body)
	}
	review := `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`
	if code, body := p.post(t, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", v1, review); code != http.StatusNotAcceptable {
		t.Errorf("a review as a table: %d %s", code, body)
	}
	trial := "/api/v1/namespaces/" + ns + "/configmaps?dryRun=All"
	for accept, kind := range map[string]string{v1: "Table", strings.Replace(v1, "Table", "PartialObjectMetadata", 1): "PartialObjectMetadata"} {
		code, body := p.post(t, trial, accept, `{"metadata":{"name":"never"}}`)
		if code != http.StatusCreated || !strings.HasPrefix(body, `{"kind":"`+kind+`"`) || !strings.Contains(body, `"name":"never"`) {
			t.Errorf("a dry run as %s: %d %s", kind, code, body)
		}
	}
}
