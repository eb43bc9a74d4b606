package verbs_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// inNamespace moves an object of servertest.ConfigMap.
func inNamespace(namespace, object string) string {
	return strings.Replace(object, `"namespace":"ns"`, fmt.Sprintf(`"namespace":%q`, namespace), 1)
}

// listed has the fields of a list or a refusal that tests check.
type listed struct {
	Metadata metav1.ListMeta     `json:"metadata"`
	Message  string              `json:"message"`
	Reason   metav1.StatusReason `json:"reason"`
	Items    []struct {
		Kind     string            `json:"kind"`
		Metadata metav1.ObjectMeta `json:"metadata"`
		Data     map[string]string `json:"data"`
	} `json:"items"`
}

func (l *listed) names() string {
	var out []string
	for _, it := range l.Items {
		out = append(out, it.Metadata.Name+"="+it.Data["v"])
	}
	return strings.Join(out, " ")
}

func (s *site) list(t testing.TB, query string) (int, *listed) {
	t.Helper()
	code, _, b := s.Fetch(t, "/api/v1/namespaces/ns/configmaps?"+query)
	l := &listed{}
	if err := json.Unmarshal(b, l); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return code, l
}

// walk follows the tokens of a list.
func walk(t testing.TB, s *site, query string) (pages []string, revisions []string) {
	t.Helper()
	next := ""
	for {
		q := query
		if next != "" {
			// A token carries the version: it must not be given again.
			v, _ := url.ParseQuery(query)
			v.Del("resourceVersion")
			v.Del("resourceVersionMatch")
			v.Set("continue", next)
			q = v.Encode()
		}
		code, l := s.list(t, q)
		if code != 200 {
			t.Fatalf("%s: %d %s", q, code, l.Message)
		}
		pages = append(pages, l.names())
		revisions = append(revisions, l.Metadata.ResourceVersion)
		if next = l.Metadata.Continue; next == "" {
			return pages, revisions
		}
	}
}

// A selected namespace ends a list as a named one does.
func TestPagesOfASelectedNamespace(t *testing.T) {
	for _, memory := range []string{"memory", "table"} {
		t.Run(memory, func(t *testing.T) {
			s := newSite(t)
			for _, ns := range []string{"m", "n", "o"} {
				for _, name := range []string{"a", "b"} {
					s.Put("configmaps", ns, name, inNamespace(ns, servertest.ConfigMap(name, `"k":"x"`, ns)))
				}
			}
			version := fmt.Sprintf("&resourceVersion=%d&resourceVersionMatch=Exact", s.Cache.Revision())
			s.Put("configmaps", "o", "c", inNamespace("o", servertest.ConfigMap("c", `"k":"x"`, "o")))
			if memory == "table" {
				s.Forget(t)
			}
			for query, want := range map[string]string{
				"metadata.namespace%3Dn&limit=2":                        "a=n b=n",
				"metadata.namespace%3Dn&limit=1":                        "a=n, b=n",
				"metadata.namespace%3Dnone&limit=1":                     "",
				"metadata.namespace!%3Dn&limit=2":                       "a=m b=m, a=o b=o",
				"metadata.namespace%3Dn,metadata.name%3Da&limit=1":      "a=n",
				"metadata.namespace%3Dn,metadata.namespace%3Do&limit=1": "",
			} {
				var pages []string
				for next := version; ; {
					_, _, b := s.Fetch(t, "/api/v1/configmaps?fieldSelector="+query+next)
					l := &listed{}
					if err := json.Unmarshal(b, l); err != nil || l.Message != "" {
						t.Fatalf("%s: %s", query, b)
					}
					pages = append(pages, l.names())
					if l.Metadata.Continue == "" {
						break
					}
					next = "&continue=" + url.QueryEscape(l.Metadata.Continue)
				}
				if got := strings.Join(pages, ", "); got != want {
					t.Errorf("%s: %s, want %s", query, got, want)
				}
			}
		})
	}
}

// A version in the future is waited for and refused with a time to come back. Where a stock server asks etcd
// instead of its watch cache (events, and a page of one object by its name) it is refused at once, without one.
func TestPagesOfTheFuture(t *testing.T) {
	s := newSite(t)
	s.PutConfigMaps()
	const later = "?resourceVersion=999999"
	for query, retry := range map[string]string{
		"configmaps" + later + "&resourceVersionMatch=NotOlderThan&limit=2": "1",
		"configmaps" + later + "&fieldSelector=metadata.name=a&limit=2":     "",
		"events" + later: "",
	} {
		code, header, b := s.Fetch(t, "/api/v1/namespaces/ns/"+query)
		if code != 504 || header.Get("Retry-After") != retry || strings.Contains(string(b), "retryAfterSeconds") != (retry != "") {
			t.Errorf("%s: %d, to come back after %q: %s", query, code, header.Get("Retry-After"), b)
		}
	}
}

func TestPagesAtEveryVersion(t *testing.T) {
	for _, memory := range []string{"memory", "table"} {
		t.Run(memory, func(t *testing.T) {
			s := newSite(t)
			before := s.PutConfigMaps()
			if memory == "table" {
				s.Forget(t)
			}
			now := s.Cache.Revision()
			for _, tc := range []struct {
				query string
				at    int64
				want  []string
			}{
				{"limit=2", now, []string{"a=1 b=2", "c=1 d=1", "e=1 f=1"}},
				{"limit=5", now, []string{"a=1 b=2 c=1 d=1 e=1", "f=1"}},
				{"limit=6", now, []string{"a=1 b=2 c=1 d=1 e=1 f=1"}},
				{fmt.Sprint("limit=2&resourceVersion=", before), before, []string{"a=1 b=1", "c=1 d=1", "e=1"}},
				{fmt.Sprint("resourceVersionMatch=Exact&resourceVersion=", before), before, []string{"a=1 b=1 c=1 d=1 e=1"}},
				{fmt.Sprint("resourceVersionMatch=Exact&limit=4&resourceVersion=", before-1), before - 1, []string{"a=1 b=1 c=1 d=1"}},
				{fmt.Sprint("limit=2&resourceVersionMatch=NotOlderThan&resourceVersion=", before), now, []string{"a=1 b=2", "c=1 d=1", "e=1 f=1"}},
				{"limit=2&resourceVersion=0", now, []string{"a=1 b=2 c=1 d=1 e=1 f=1"}},
				{"limit=1&labelSelector=k%3Dy", now, []string{"b=2", ""}},
				{fmt.Sprint("limit=2&labelSelector=k%3Dx&resourceVersion=", before), before, []string{"a=1 b=1", "c=1 d=1", "e=1"}},
				{"limit=1&fieldSelector=metadata.name%3Dc", now, []string{"c=1"}},
			} {
				pages, revisions := walk(t, s, tc.query)
				if fmt.Sprint(pages) != fmt.Sprint(tc.want) {
					t.Errorf("%s: %q, want %q", tc.query, pages, tc.want)
				}
				for _, r := range revisions {
					if r != strconv.FormatInt(tc.at, 10) {
						t.Errorf("%s: at %s, want %d", tc.query, r, tc.at)
					}
				}
			}
		})
	}
}

func TestExpiredTokens(t *testing.T) {
	s := newSiteWith(t, sqlstore.Config{Retention: 10 * time.Millisecond, CompactEvery: 10 * time.Millisecond})
	s.PutConfigMaps()
	_, first := s.list(t, "limit=2")
	s.Compacted(t, s.Put("configmaps", "ns", "c", servertest.ConfigMap("c", "", "9")))
	// Later pages of the inconsistent list could expire too: it is read in one.
	code, l := s.list(t, "limit=2&continue="+first.Metadata.Continue)
	if code != 410 || l.Reason != metav1.StatusReasonExpired || l.Metadata.Continue == "" {
		t.Fatalf("%d %s %q", code, l.Reason, l.Metadata.Continue)
	}
	code, l = s.list(t, "continue="+l.Metadata.Continue)
	if code != 200 || l.names() != "c=9 d=1 e=1 f=1" || l.Metadata.ResourceVersion != fmt.Sprint(s.Cache.Revision()) {
		t.Fatalf("going on: %d %s at %s", code, l.names(), l.Metadata.ResourceVersion)
	}
	if code, l = s.list(t, "resourceVersionMatch=Exact&resourceVersion=2"); code != 410 || l.Metadata.Continue != "" {
		t.Errorf("an old version: %d %s", code, l.Message)
	}
}

func TestBadTokens(t *testing.T) {
	s := newSite(t)
	token := func(v string, rv int, start string) string {
		b, err := json.Marshal(map[string]any{"v": v, "rv": rv, "start": start})
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	const v1 = "meta.k8s.io/v1"
	for token, want := range map[string]string{
		"!!!":                  "illegal base64 data at input byte 0",
		token("v2", 1, "a"):    "server does not recognize this encoded version v2",
		token(v1, 0, "a"):      "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
		token(v1, 1, ""):       "encoded start key empty (version meta.k8s.io/v1)",
		token(v1, 1, "../a"):   "../a",
		token(v1, 1, "a//b"):   "a//b",
		token(v1, 1, "a/../b"): "a/../b",
	} {
		code, l := s.list(t, "limit=1&continue="+token)
		if code != 400 || l.Message != "invalid continue token: continue key is not valid: "+want {
			t.Errorf("%s: %d %s", token, code, l.Message)
		}
	}
	// A selector of one name does not make a token go unread, nor a limit a version.
	for query, want := range map[string]int{
		"fieldSelector=metadata.name%3Da&continue=!!!":              400,
		"fieldSelector=metadata.name%3Da&limit=1&resourceVersion=x": 400,
		"fieldSelector=metadata.name%3Da&resourceVersion=x":         500,
	} {
		if code, l := s.list(t, query); code != want {
			t.Errorf("%s: %d %s", query, code, l.Message)
		}
	}
}

// TestDeleteCollectionAtAVersion: a version means what it means to a page, and where
// the options are not in a body it is a precondition too.
func TestDeleteCollectionAtAVersion(t *testing.T) {
	s := newSite(t)
	before := s.PutConfigMaps()
	for _, tc := range []struct {
		query, body string
		want        int
	}{
		{"resourceVersion=x", "", 400},
		{fmt.Sprint("dryRun=All&resourceVersion=", before), "", 409},
		{fmt.Sprint("resourceVersion=", before), `{"dryRun":["All"]}`, 200},
	} {
		query, want := tc.query, tc.want
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, s.Plain+"/api/v1/namespaces/ns/configmaps?"+query, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var l listed
		if err := json.NewDecoder(resp.Body).Decode(&l); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want || want == 200 && (l.Metadata.ResourceVersion != fmt.Sprint(before) || len(l.Items) == 0 || l.Metadata.Continue != "") {
			t.Errorf("%s: %d %s %+v", query, resp.StatusCode, l.Message, l.Metadata)
		}
	}
}

func TestListAllNamespacesInPages(t *testing.T) {
	s := newSite(t)
	for _, ns := range []string{"a", "b", "c"} {
		for _, name := range []string{"x", "y"} {
			s.Put("configmaps", ns, name, fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":"u"}}`, name, ns))
		}
	}
	var got []string
	next := ""
	for {
		_, _, b := s.Fetch(t, "/api/v1/configmaps?limit=3&continue="+next)
		l := &listed{}
		if err := json.Unmarshal(b, l); err != nil {
			t.Fatal(err)
		}
		for _, it := range l.Items {
			got = append(got, it.Metadata.Namespace+"/"+it.Metadata.Name)
		}
		if next = l.Metadata.Continue; next == "" {
			break
		}
	}
	if want := "[a/x a/y b/x b/y c/x c/y]"; fmt.Sprint(got) != want {
		t.Errorf("%v", got)
	}
}

func TestCorruptObjects(t *testing.T) {
	s := newSite(t)
	s.PutConfigMaps()
	s.Put("configmaps", "ns", "broken", `{"kind":"ConfigMap","metadata":{"name":"broken"`)
	if code, l := s.list(t, ""); code != 500 || l.Reason != metav1.StatusReasonInternalError {
		t.Errorf("list: %d %s", code, l.Reason)
	}
	code, _, b := s.Fetch(t, "/api/v1/namespaces/ns/configmaps/broken")
	if code != 500 || !strings.Contains(string(b), "corrupt object") {
		t.Errorf("get: %d %s", code, b)
	}
	s.Verbs.Answers.NameCorrupt = true
	code, l := s.list(t, "")
	if code != 500 || l.Reason != metav1.StatusReasonStoreReadError || l.Message != "failed to read one or more configmaps from the storage" {
		t.Errorf("list with the gate: %d %s %s", code, l.Reason, l.Message)
	}
	if code, _, _ := s.Fetch(t, "/api/v1/namespaces/ns/configmaps/a"); code != 200 {
		t.Errorf("another object: %d", code)
	}
}

// TestCorruptInEveryForm: an object that is valid JSON and not of its kind is reported
// in every form, from memory, from the table and by a watch; objects
// next to it are not touched.
func TestCorruptInEveryForm(t *testing.T) {
	s := newSite(t)
	s.PutConfigMaps()
	s.Put("configmaps", "ns", "broken", strings.Replace(servertest.ConfigMap("broken", "", "1"), `"v":"1"`, `"v":1`, 1))
	at := s.Cache.Revision()
	s.Put("configmaps", "ns", "later", servertest.ConfigMap("later", "", "1"))
	for _, accept := range []string{
		"application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
		"application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadata%s;g=meta.k8s.io;v=v1",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata%s;g=meta.k8s.io;v=v1",
	} {
		one, many := strings.Replace(accept, "%s", "", 1), strings.Replace(accept, "%s", "List", 1)
		const path = "/api/v1/namespaces/ns/configmaps"
		for url, form := range map[string]string{
			path + "/broken": one, path + "/broken?resourceVersion=0": one, path + "/broken?pretty=1": one,
			path: many, path + "?resourceVersion=0": many, path + "?labelSelector=a%3Db": many,
			path + "?fieldSelector=metadata.name%3Dbroken":                           many,
			path + fmt.Sprintf("?resourceVersion=%d&resourceVersionMatch=Exact", at): many,
		} {
			code, _, b := s.Fetch(t, url, "Accept", form)
			if code != 500 || !strings.Contains(string(b), "corrupt object") || !strings.Contains(string(b), "/registry/configmaps/ns/broken") {
				t.Errorf("%s as %s: %d %.200q", url, form, code, b)
			}
		}
		if code, _, b := s.Fetch(t, path+"/a", "Accept", one); code != 200 {
			t.Errorf("another object as %s: %d %.200q", one, code, b)
		}
		if code, _, b := s.Fetch(t, path+"?limit=1", "Accept", many); code != 200 {
			t.Errorf("a page before it as %s: %d %.200q", many, code, b)
		}
		for _, from := range []int64{0, at - 1} {
			if one == "application/yaml" {
				continue // there are no watches in it
			}
			code, _, b := s.Fetch(t, fmt.Sprintf("%s?watch=1&timeoutSeconds=5&resourceVersion=%d", path, from), "Accept", one)
			if code != 200 || !strings.Contains(string(b), "ERROR") || !strings.Contains(string(b), "corrupt object") {
				t.Errorf("a watch from %d as %s: %d %.300q", from, one, code, b)
			}
		}
	}
}

func TestTooLargeVersionsAreWaitedFor(t *testing.T) {
	// In memory a write takes no time of the few seconds that are waited, whatever the disk does.
	s := &site{servertest.NewSite(t, storetest.NewShared().Open(), sqlstore.Config{})}
	s.PutConfigMaps()
	want := s.Cache.Revision() + 1
	var written sync.WaitGroup
	defer written.Wait()
	written.Go(func() {
		time.Sleep(20 * time.Millisecond)
		s.Put("configmaps", "ns", "late", servertest.ConfigMap("late", "", "1"))
	})
	code, l := s.list(t, fmt.Sprint("resourceVersionMatch=NotOlderThan&resourceVersion=", want))
	if code != 200 || len(l.Items) != 7 {
		t.Errorf("%d: %s", code, l.names())
	}
}
