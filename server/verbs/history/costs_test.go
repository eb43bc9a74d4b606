package history_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
)

// watched is a database that records its calls, and whose bounds are unreadable for a while.
type watched struct {
	sqlstore.Driver
	most    atomic.Int64 // rows of one read of the past
	bounds  atomic.Int64
	failing atomic.Bool
}

func (w *watched) Past(ctx context.Context, key sqlstore.Key, before int64, limit int) ([]sqlstore.Row, error) {
	w.most.Store(max(w.most.Load(), int64(limit)))
	return w.Driver.Past(ctx, key, before, limit)
}

func (w *watched) Bounds(ctx context.Context) (sqlstore.Bounds, error) {
	if w.failing.Load() {
		w.bounds.Add(1)
		return sqlstore.Bounds{}, errors.New("out of reach")
	}
	return w.Driver.Bounds(ctx)
}

// Exclusive implements sqlstore.Driver: others may write, so that the head is asked for.
func (w *watched) Exclusive() uint64 { return 0 }

// TestSmallSteps: small writes do not let many large ones be read at once behind them.
func TestSmallSteps(t *testing.T) {
	db := &watched{Driver: stores["memory"](t)}
	s := servertest.Start(t, servertest.Plain(nil), served, servertest.On(db, sqlstore.Config{}))
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	configmap(t, s, "POST", "0")
	for i := range 20 {
		configmap(t, s, "PUT", strings.Repeat(string(rune('a'+i)), 500<<10))
	}
	for i := range 40 {
		configmap(t, s, "PUT", fmt.Sprint(i))
	}
	got := read[history.RevisionList](t, s, list("shop", "configmaps", "c", "&limit=100"))
	if n := db.most.Load(); len(got.Items) != 61 || n > 4 {
		t.Errorf("%d revisions were listed, up to %d read at once", len(got.Items), n)
	}
}

// TestAsksFirst: the server does not query the database for the definition of an unknown resource
// before the authorizer has allowed the request.
func TestAsksFirst(t *testing.T) {
	db := &watched{Driver: stores["memory"](t)}
	s := servertest.Start(t, servertest.Complete(t), servertest.Idle, served, servertest.On(db, sqlstore.Config{}))
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	grant(s, "u", "shop", rule(everyRevision))
	grant(s, "may", "shop", rule(everyRevision), rule("get a.example/things"))
	path := list("shop", "things.a.example", "x", "")
	servertest.Eventually(t, func() bool {
		return s.Do("GET", path, "", "Impersonate-User", "may").Code == http.StatusOK && s.Do("GET", path, "", "Impersonate-User", "u").Code == http.StatusForbidden
	})
	db.failing.Store(true)
	defer db.failing.Store(false)
	if w := s.Do("GET", path, "", "Impersonate-User", "u"); w.Code != http.StatusForbidden {
		t.Errorf("who may not: %d %s", w.Code, w.Body)
	}
	if w := s.Do("GET", path, "", "Impersonate-User", "may"); w.Code < 500 || db.bounds.Load() == 0 {
		t.Errorf("who may: %d %s", w.Code, w.Body)
	}
}

// TestConvertedOnce: each write of a page goes to a webhook that converts once, and those that
// were read together go together.
func TestConvertedOnce(t *testing.T) {
	var calls, converted atomic.Int64
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID               string           `json:"uid"`
				DesiredAPIVersion string           `json:"desiredAPIVersion"`
				Objects           []map[string]any `json:"objects"`
			} `json:"request"`
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		calls.Add(1)
		converted.Add(int64(len(review.Request.Objects)))
		for _, o := range review.Request.Objects {
			o["apiVersion"] = review.Request.DesiredAPIVersion
		}
		err := json.NewEncoder(w).Encode(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": map[string]any{
			"uid": review.Request.UID, "result": map[string]string{"status": "Success"}, "convertedObjects": review.Request.Objects,
		}})
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(hook.Close)
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}))
	s := servertest.Start(t, servertest.Complete(t), served)
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	const open, path = `"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`, "/apis/c.example/v1/namespaces/shop/things"
	s.Must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(`{"metadata":{"name":"things.c.example"},"spec":{"group":"c.example","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},
		"versions":[{"name":"v2","served":true,"storage":false,%s},{"name":"v1","served":true,"storage":true,%s}],
		"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%q,"caBundle":%q}}}}}`, open, open, hook.URL, authority))
	servertest.Eventually(t, func() bool { return s.Do("GET", path, "").Code == http.StatusOK })
	s.Must("POST", path, `{"apiVersion":"c.example/v1","kind":"Thing","metadata":{"name":"x"},"v":0}`)
	for i := range 11 {
		s.Must("PATCH", path+"/x", fmt.Sprintf(`{"v":%d}`, i+1), "Content-Type", "application/merge-patch+json")
	}
	calls.Store(0)
	converted.Store(0)
	got := read[history.RevisionList](t, s, list("shop", "things.c.example", "x", "&content=true"))
	if len(got.Items) != 12 || got.Items[0].Object.Version != "v2" || !strings.Contains(string(got.Items[0].Content.Raw), `"c.example/v2"`) || got.Items[0].ChangedFields[0] != "v" {
		t.Fatalf("%d revisions, the first %+v", len(got.Items), got.Items[0])
	}
	if calls.Load() > 4 || converted.Load() != 12 {
		t.Errorf("%d objects were converted in %d calls, want 12 in 4 at most", converted.Load(), calls.Load())
	}
}
