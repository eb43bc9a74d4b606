package history_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestAnotherNamespace: a user with rights in a recreated namespace sees nothing of the earlier one of that
// name: by its history, by lists as of then, or by watches from then. A user with rights in all namespaces
// does.
func TestAnotherNamespace(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t), served)
	const shop, secrets, hidden = "/api/v1/namespaces/shop", "/api/v1/namespaces/shop/secrets", "aGlkZGVu"
	fill := func(value string) int64 {
		s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
		for _, name := range []string{"other", "key"} {
			s.Must("POST", secrets, fmt.Sprintf(`{"metadata":{"name":%q},"stringData":{"k":%q}}`, name, value))
		}
		return s.Store.Applied()
	}
	fill("hidden")
	s.Must("POST", secrets, `{"metadata":{"name":"only"}}`)
	past := s.Store.Applied()
	then := time.Now().UTC().Format(time.RFC3339Nano)
	s.Must("DELETE", shop, "")
	servertest.Eventually(t, func() bool { return s.Do("GET", shop, "").Code == http.StatusNotFound })
	now := fill("mine")
	rights := []string{rule(everyRevision), rule("get,list,watch /secrets")}
	grant(s, "tenant", "shop", rights...)
	grant(s, "all", "*", rights...)
	exact := func(more string) string {
		return fmt.Sprintf("%s?resourceVersion=%d&resourceVersionMatch=Exact%s", secrets, past, more)
	}
	one, later := fmt.Sprintf("%ssecrets:key:%d", item, past), fmt.Sprintf("%ssecrets:key:%d", item, now)
	watch := fmt.Sprintf("%s?watch=1&timeoutSeconds=1&resourceVersion=%d", secrets, past-1)
	const gone, yes = http.StatusGone, http.StatusOK
	for path, code := range map[string]int{
		one: gone, one + "/diff": gone, later + "/diff?from=" + fmt.Sprint(past): gone, item + "secrets:key:at-" + then: gone,
		exact(""): gone, exact("&fieldSelector=metadata.name%3Dkey"): gone, fmt.Sprintf("%s?limit=1&resourceVersion=%d", secrets, past): gone,
		watch: gone, watch + "&fieldSelector=metadata.name%3Dkey": gone,
		later: yes, later + "/diff": yes, list("shop", "secrets", "key", "&content=true"): yes, secrets: yes,
		fmt.Sprintf("%s?resourceVersion=%d", secrets, past): yes, fmt.Sprintf("%s?resourceVersion=%d&resourceVersionMatch=Exact", secrets, now): yes,
		fmt.Sprintf("%s?watch=1&timeoutSeconds=1&resourceVersion=%d", secrets, now): yes,
	} {
		w := s.Do("GET", path, "", "Impersonate-User", "tenant")
		if w.Code != code || strings.Contains(w.Body.String(), hidden) {
			t.Errorf("tenant GET %s: %d %s, want %d", path, w.Code, w.Body, code)
		}
		w = s.Do("GET", path, "", "Impersonate-User", "all")
		if shows := code == gone && !strings.HasSuffix(path, "diff"); w.Code != yes || shows && !strings.Contains(w.Body.String(), hidden) {
			t.Errorf("who may get all GET %s: %d %s", path, w.Code, w.Body)
		}
	}
	for user, writes := range map[string]int{"tenant": 1, "all": 3} {
		got := read[history.RevisionList](t, s, list("shop", "secrets", "key", "&limit=1"), "Impersonate-User", user)
		items := got.Items
		for got.Continue != "" {
			got = read[history.RevisionList](t, s, list("shop", "secrets", "key", "&limit=1&continue="+got.Continue), "Impersonate-User", user)
			items = append(items, got.Items...)
		}
		if len(items) != writes || items[0].Previous != "" || items[0].Change != history.Created {
			t.Errorf("%s sees %d writes, want %d: %+v", user, len(items), writes, items)
		}
	}
	// Whether there was an object in the earlier namespace shows as little: names that it had are answered as others.
	for _, name := range []string{"only", "never"} {
		for when, code := range map[string]int{fmt.Sprint(past): gone, "at-" + then: gone, fmt.Sprint(now): http.StatusNotFound} {
			w := s.Do("GET", item+"secrets:"+name+":"+when, "", "Impersonate-User", "tenant")
			if w.Code != code {
				t.Errorf("tenant GET %s at %s: %d %s, want %d", name, when, w.Code, w.Body, code)
			}
		}
		if got := read[history.RevisionList](t, s, list("shop", "secrets", name, ""), "Impersonate-User", "tenant"); len(got.Items) != 0 {
			t.Errorf("tenant lists of %s %+v", name, got.Items)
		}
	}
	// That user's token does not help others.
	page := read[metav1.PartialObjectMetadataList](t, s, exact("&limit=1"))
	if page.Continue == "" {
		t.Fatal("the list of then has no second page")
	}
	if w := s.Do("GET", secrets+"?limit=1&continue="+page.Continue, "", "Impersonate-User", "tenant"); w.Code != gone || strings.Contains(w.Body.String(), hidden) {
		t.Errorf("with a token of others: %d %s", w.Code, w.Body)
	}
}

// TestAnotherNamespaceItself: a right to the Namespace object that was given in it is none to
// the object that had the name before.
func TestAnotherNamespaceItself(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t), served)
	const shop = "/api/v1/namespaces/shop"
	made := func(owner string) int64 {
		s.Must("POST", "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":"shop","labels":{"owner":%q}}}`, owner))
		return s.Store.Applied()
	}
	past := made("hidden")
	s.Must("DELETE", shop, "")
	servertest.Eventually(t, func() bool { return s.Do("GET", shop, "").Code == http.StatusNotFound })
	now := made("mine")
	grant(s, "reader", "*", rule(everyRevision))
	s.Must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"metadata":{"name":"tenant"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"tenant"}]}`)
	grant(s, "tenant", "shop", rule("get /namespaces"))
	grant(s, "all", "*", rule(everyRevision), rule("get /namespaces"))
	for user, codes := range map[string][2]int{"reader": {http.StatusForbidden, http.StatusForbidden}, "tenant": {http.StatusGone, http.StatusOK}, "all": {http.StatusOK, http.StatusOK}} {
		for i, revision := range []int64{past, now} {
			w := s.Do("GET", fmt.Sprintf("%s/clusterrevisions/namespaces:shop:%d", root, revision), "", "Impersonate-User", user)
			if w.Code != codes[i] || w.Code != http.StatusOK && strings.Contains(w.Body.String(), `"owner"`) {
				t.Errorf("%s GET at %d: %d %s, want %d", user, revision, w.Code, w.Body, codes[i])
			}
		}
	}
}
