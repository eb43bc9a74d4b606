package migrations_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"encoding/base64"
	"encoding/pem"

	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/migrations"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	storagemigrationv1alpha1 "github.com/rowlock/rowlock/server/removed/k8s.io/api/storagemigration/v1alpha1"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

const migrationsPath = "/apis/storagemigration.k8s.io/v1alpha1/storageversionmigrations"

// migrating is a server that serves storage migrations, and what does them.
type migrating struct {
	*servertest.Server
	t      *testing.T
	memory *memory.Database
	work   migrations.Controller
}

func newMigrating(t *testing.T, keys sqlstore.Sealer) *migrating {
	return newMigratingIn(t, keys, "--runtime-config=storagemigration.k8s.io/v1alpha1", "--feature-gates=StorageVersionMigrator=true")
}

func newMigratingIn(t *testing.T, keys sqlstore.Sealer, flags ...string) *migrating {
	m := &migrating{t: t, memory: storetest.NewShared()}
	cfg := sqlstore.Config{Sealer: keys}
	m.Server = servertest.Start(t,
		servertest.Complete(t, flags...),
		servertest.On(m.memory.Open(), cfg), func(c *server.Config) {
			c.Controllers.Runs = func(name string) bool { return name == "customresourcedefinitions" }
			m.work.Catalogue = c.Catalogue
		})
	m.work.Base = reconcile.Base{API: m.Server, Cache: m.Cache, Log: controllertest.DiscardLog, Retry: time.Millisecond}
	m.work.Objects = objects.New(m.work.Catalogue, m.Store, m.Cache)
	m.work.Follow = m.Custom.Follow
	return m
}

// start runs the controller until stop is called.
func (m *migrating) start() (stop func()) {
	// Another one each time, as after a restart.
	work := migrations.Controller{Base: m.work.Base, Objects: m.work.Objects, Catalogue: m.work.Catalogue, Follow: m.work.Follow}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- work.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			m.t.Error(err)
		}
	})
	m.t.Cleanup(stop)
	return stop
}

func (m *migrating) create(name, group, version, resource string) {
	m.t.Helper()
	m.Must("POST", migrationsPath, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"resource":{"group":%q,"version":%q,"resource":%q}}}`, name, group, version, resource))
}

// ends waits until a migration has ended, and returns its status.
func (m *migrating) ends(name string) storagemigrationv1alpha1.StorageVersionMigrationStatus {
	m.t.Helper()
	var got storagemigrationv1alpha1.StorageVersionMigration
	servertest.Eventually(m.t, func() bool {
		got = storagemigrationv1alpha1.StorageVersionMigration{}
		if err := json.Unmarshal(m.Must("GET", migrationsPath+"/"+name, ""), &got); err != nil {
			m.t.Fatal(err)
		}
		last := len(got.Status.Conditions) - 1
		return last >= 0 && got.Status.Conditions[last].Type != storagemigrationv1alpha1.MigrationRunning
	})
	return got.Status
}

// statusText describes a status.
func statusText(s storagemigrationv1alpha1.StorageVersionMigrationStatus) string {
	var parts []string
	for _, c := range s.Conditions {
		if c.LastUpdateTime.IsZero() {
			parts = append(parts, "untimed")
		}
		parts = append(parts, fmt.Sprintf("%s=%s %s %q", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(parts, ", ")
}

const (
	migrated = `Running=False StorageVersionMigrationInProgress "", Succeeded=True StorageVersionMigrationSucceeded ""`
	failed   = `Running=False StorageVersionMigrationInProgress "", Failed=True StorageVersionMigrationFailed "migration encountered unhandled error"`
)

func (m *migrating) row(resource, namespace, name string) sqlstore.Row {
	m.t.Helper()
	row, err := m.memory.Open().Read(context.Background(), sqlstore.Key{Resource: resource, Namespace: namespace, Name: name}, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	return row
}

// TestMigrationToAnotherKey: all objects of the resource are encrypted by the new key, with
// the same content and expiry; others stay as they are. A second migration finds
// nothing to do.
func TestMigrationToAnotherKey(t *testing.T) {
	keys := storetest.NewTestSealer("one")
	m := newMigrating(t, keys)
	for i := range 45 { // of some pages
		m.Must("POST", "/api/v1/namespaces/default/secrets", fmt.Sprintf(`{"metadata":{"name":"s%d"},"data":{"k":"djEyMw=="}}`, i))
	}
	m.Must("POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"c"}}`)
	m.Must("POST", "/api/v1/namespaces/default/events", `{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"},"reason":"Test"}`)
	written := m.row("events", "default", "e")
	spaced := sqlstore.Op{Verb: sqlstore.Update, Key: written.Key, Expect: written.Revision, Value: append([]byte(" "), written.Value...), ExpiresAt: written.ExpiresAt}
	if _, err := m.Store.Write(t.Context(), spaced); err != nil { // as an older server might have written it
		t.Fatal(err)
	}
	plain := m.row("configmaps", "default", "c").Revision
	before := m.Must("GET", "/api/v1/namespaces/default/secrets/s7", "")
	keys.SetKeys("two", "one")
	revision := m.Cache.Revision()
	m.create("secrets", "", "v1", "secrets")
	m.create("events", "events.k8s.io", "v1", "events") // another version than the stored one
	m.start()
	status := m.ends("secrets")
	if got := statusText(status); got != migrated {
		t.Error(got)
	}
	if at, err := strconv.ParseInt(status.ResourceVersion, 10, 64); err != nil || at < revision || at > m.Cache.Revision() {
		t.Errorf("resourceVersion %s, after %d", status.ResourceVersion, revision)
	}
	for i := range 45 {
		if _, key, _, _ := sqlstore.SealedBy(m.row("secrets", "default", fmt.Sprint("s", i)).Value); key != "two" {
			t.Errorf("s%d is encrypted with the key %q", i, key)
		}
	}
	if m.row("configmaps", "default", "c").Revision != plain {
		t.Error("an object of another resource is stored again")
	}
	after := m.Must("GET", "/api/v1/namespaces/default/secrets/s7", "")
	if a, b := revisionOut(t, before), revisionOut(t, after); a != b {
		t.Errorf("before %s\nafter %s", a, b)
	}
	if got := statusText(m.ends("events")); got != migrated {
		t.Error(got)
	}
	if row := m.row("events", "default", "e"); !row.ExpiresAt.Equal(written.ExpiresAt) || string(row.Value) != string(written.Value) {
		t.Errorf("the event is %s and expires at %v; it was %s and did at %v", row.Value, row.ExpiresAt, written.Value, written.ExpiresAt)
	}
	at := m.row("secrets", "default", "s7").Revision
	m.create("again", "", "v1", "secrets")
	if got := statusText(m.ends("again")); got != migrated || m.row("secrets", "default", "s7").Revision != at {
		t.Errorf("%s, and an object that was stored anew is so again", got)
	}
}

// revisionOut returns an object without its revision.
func revisionOut(t *testing.T, object []byte) string {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal(object, &tree); err != nil {
		t.Fatal(err)
	}
	delete(tree["metadata"].(map[string]any), "resourceVersion")
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestMigrationsThatFail: failures are reported with the texts of a stock controller.
func TestMigrationsThatFail(t *testing.T) {
	m := newMigrating(t, nil)
	m.work.Clock = func() time.Time { return time.Now().Add(time.Hour) }
	m.Put("configmaps", "default", "broken", "this is no object")
	m.start()
	for name, c := range map[string]struct{ group, version, resource, want string }{
		"unknown":  {"example.com", "v1", "things", `Failed=True StorageVersionMigrationFailed "resource does not exist in discovery"`},
		"unserved": {"storage.k8s.io", "v1beta1", "volumeattributesclasses", `Failed=True StorageVersionMigrationFailed "resource does not exist in discovery"`},
		"virtual":  {"authorization.k8s.io", "v1", "subjectaccessreviews", `Failed=True StorageVersionMigrationFailed "resource not found"`},
		"broken":   {"", "v1", "configmaps", failed},
	} {
		m.create(name, c.group, c.version, c.resource)
		if got := statusText(m.ends(name)); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// restorer stores objects for migrations.
type restorer func(ctx context.Context, p permits.Permit, r *kinds.Resource, after sqlstore.Key) (objects.Restored, error)

func (f restorer) Restore(ctx context.Context, p permits.Permit, r *kinds.Resource, after sqlstore.Key) (objects.Restored, error) {
	return f(ctx, p, r, after)
}

// TestMigrationsThatAreInterrupted: one whose resource or key comes later waits for it, one
// that was begun elsewhere is gone on with, and one that is deleted ends.
func TestMigrationsThatAreInterrupted(t *testing.T) {
	keys := storetest.NewTestSealer("one")
	m := newMigrating(t, keys)
	m.Must("POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"s"},"data":{"k":"djEyMw=="}}`)
	keys.SetKeys("two", "one")
	keys.Fail(fmt.Errorf("%w: the key server is away", sqlstore.ErrKeyUnavailable))

	tried := make(chan error, 1)
	store := m.work.Objects
	m.work.Objects = restorer(func(ctx context.Context, p permits.Permit, r *kinds.Resource, after sqlstore.Key) (objects.Restored, error) {
		page, err := store.Restore(ctx, p, r, after)
		select {
		case tried <- err:
		default:
		}
		return page, err
	})
	stop := m.start()
	m.create("secrets", "", "v1", "secrets")
	for range 9 { // more often than an error of an object is met
		if err := <-tried; !errors.Is(err, sqlstore.ErrKeyUnavailable) {
			t.Fatal(err)
		}
	}
	stop() // as with the server that leads
	m.work.Objects = store
	keys.Fail(nil)
	m.start()
	if got := statusText(m.ends("secrets")); got != migrated {
		t.Error(got)
	}
	m.create("early", "example.com", "v1", "things")
	m.define("v1", "")
	if got := statusText(m.ends("early")); got != migrated {
		t.Error(got)
	}
}

// TestMigrationThatIsDeleted ends with the page that is in work.
func TestMigrationThatIsDeleted(t *testing.T) {
	m := newMigrating(t, nil)
	var mu sync.Mutex
	pages := map[string]int{}
	m.work.Objects = restorer(func(_ context.Context, p permits.Permit, r *kinds.Resource, _ sqlstore.Key) (objects.Restored, error) {
		mu.Lock()
		defer mu.Unlock()
		if pages[r.Plural]++; r.Plural != "secrets" {
			return objects.Restored{}, nil
		}
		m.Must("DELETE", migrationsPath+"/endless", "")
		return objects.Restored{More: true, Written: 1}, nil
	})
	m.start()
	m.create("endless", "", "v1", "secrets")
	servertest.Eventually(t, func() bool { return m.Do("GET", migrationsPath+"/endless", "").Code == 404 })
	m.create("next", "", "v1", "configmaps")
	if got := statusText(m.ends("next")); got != migrated {
		t.Error(got)
	}
	mu.Lock()
	defer mu.Unlock()
	if pages["secrets"] != 1 {
		t.Errorf("%d pages of a migration that was deleted in the first", pages["secrets"])
	}
}

// meddler makes a concurrent write before a value is encrypted for the table.
type meddler struct {
	*storetest.TestSealer
	before func(name string)
}

func (l *meddler) Seal(ctx context.Context, key sqlstore.Key, plain []byte) ([]byte, error) {
	if key.Resource == "secrets" {
		l.before(key.Name)
	}
	return l.TestSealer.Seal(ctx, key, plain)
}

// TestMigrationDuringWrites: a client's write or delete of an object that is about to be stored
// again wins.
func TestMigrationDuringWrites(t *testing.T) {
	const path = "/api/v1/namespaces/default/secrets/"
	keys := &meddler{storetest.NewTestSealer("one"), func(string) {}}
	m := newMigrating(t, keys)
	for _, name := range []string{"changed", "deleted", "left"} {
		m.Must("POST", path, `{"metadata":{"name":"`+name+`"},"data":{"k":"djE="}}`)
	}
	keys.SetKeys("two", "one")
	once := map[string]bool{}
	keys.before = func(name string) { // by the one goroutine of the migration, and of whom it lets in
		if once[name] {
			return
		}
		switch once[name] = true; name {
		case "changed":
			m.Must("PATCH", path+name, `{"data":{"k":"djI="}}`, "Content-Type", "application/merge-patch+json")
		case "deleted":
			m.Must("DELETE", path+name, "")
		}
	}
	m.start()
	m.create("secrets", "", "v1", "secrets")
	if got := statusText(m.ends("secrets")); got != migrated {
		t.Error(got)
	}
	if got := string(m.Must("GET", path+"changed", "")); !strings.Contains(got, `"k":"djI="`) {
		t.Error(got)
	}
	if code := m.Do("GET", path+"deleted", "").Code; code != 404 {
		t.Errorf("an object that was deleted is there: %d", code)
	}
	for _, name := range []string{"changed", "left"} {
		if _, key, _, _ := sqlstore.SealedBy(m.row("secrets", "default", name).Value); key != "two" {
			t.Errorf("%s is encrypted with the key %q", name, key)
		}
	}
}

// define makes or changes the definition of the custom resource, which has the versions v1 and v2.
func (m *migrating) define(stored, conversion string) {
	m.t.Helper()
	version := func(name, field string) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%v,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{%q:{"type":"string"}}}}}}}`, name, name == stored, field)
	}
	if conversion == "" {
		conversion = `{"strategy":"None"}`
	}
	first := "text"
	if strings.Contains(conversion, "Webhook") {
		first = "words"
	}
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	body := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"conversion":` +
		conversion + `,"versions":[` + version("v1", first) + "," + version("v2", "text") + `]}}`
	m.Must("PATCH", path+"/things.example.com?fieldManager=test&force=true", body, "Content-Type", "application/apply-patch+yaml")
	servertest.Eventually(m.t, func() bool {
		return m.Do("GET", "/apis/example.com/"+stored+"/things", "").Code == 200 && strings.Contains(string(m.Must("GET", path+"/things.example.com", "")), `"type":"Established"`)
	})
}

// converter answers conversions of the custom resource: v1 has words where v2 has a text.
func converter(t *testing.T) (conversion string) {
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var review struct {
			Request struct {
				UID               string           `json:"uid"`
				DesiredAPIVersion string           `json:"desiredAPIVersion"`
				Objects           []map[string]any `json:"objects"`
			} `json:"request"`
		}
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		if err != nil {
			t.Error(err)
			return
		}
		for _, o := range review.Request.Objects {
			spec, _ := o["spec"].(map[string]any)
			from, to := "words", "text"
			if review.Request.DesiredAPIVersion == "example.com/v1" {
				from, to = to, from
			}
			if v, ok := spec[from]; ok {
				delete(spec, from)
				spec[to] = v
			}
			o["apiVersion"] = review.Request.DesiredAPIVersion
		}
		answer := map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": map[string]any{
			"uid": review.Request.UID, "result": map[string]string{"status": "Success"}, "convertedObjects": review.Request.Objects,
		}}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(hook.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	return fmt.Sprintf(`{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%q,"caBundle":%q}}}`, hook.URL, base64.StdEncoding.EncodeToString(authority))
}

// TestMigrationToAnotherVersion: custom objects are stored in the new version, converted as their
// definition states, and the old version may then be removed.
func TestMigrationToAnotherVersion(t *testing.T) {
	for name, conversion := range map[string]string{"None": "", "Webhook": converter(t)} {
		t.Run(name, func(t *testing.T) {
			m := newMigrating(t, nil)
			m.define("v1", conversion)
			field := map[bool]string{true: "text", false: "words"}[conversion == ""]
			for i := range 25 {
				m.Must("POST", "/apis/example.com/v1/namespaces/default/things", fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t%d"},"spec":{%q:"v%d"}}`, i, field, i))
			}
			m.define("v2", conversion)
			if row := m.row("things.example.com", "default", "t3"); !strings.Contains(string(row.Value), `"example.com/v1"`) {
				t.Fatalf("stored as %s", row.Value)
			}
			m.start()
			m.create("things", "example.com", "v1", "things")
			if got := statusText(m.ends("things")); got != migrated {
				t.Error(got)
			}
			for i := range 25 {
				row := string(m.row("things.example.com", "default", fmt.Sprint("t", i)).Value)
				if !strings.Contains(row, `"apiVersion":"example.com/v2","kind"`) || !strings.Contains(row, fmt.Sprintf(`"spec":{"text":"v%d"}`, i)) {
					t.Errorf("t%d is stored as %s", i, row)
				}
			}
			const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com"
			m.Must("PATCH", path+"/status", `{"status":{"storedVersions":["v2"]}}`, "Content-Type", "application/merge-patch+json")
			m.Must("PATCH", path, `[{"op":"remove","path":"/spec/versions/0"}]`, "Content-Type", "application/json-patch+json")
			servertest.Eventually(t, func() bool { return m.Do("GET", "/apis/example.com/v1/things", "").Code == 404 })
			if got := string(m.Must("GET", "/apis/example.com/v2/namespaces/default/things/t3", "")); !strings.Contains(got, `"text":"v3"`) {
				t.Error(got)
			}
		})
	}
}

// TestMigrationFollowsDefinitions: a migration uses definitions that were written before it, even if no
// request has used them since.
func TestMigrationFollowsDefinitions(t *testing.T) {
	m := newMigrating(t, nil)
	m.define("v1", "")
	m.Must("POST", "/apis/example.com/v1/namespaces/default/things", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"}}`)
	served := m.work.Catalogue
	behind := kinds.NewCatalogue(served.Known())
	m.define("v2", "")
	m.work.Catalogue, m.work.Follow = behind, func() {
		m.Custom.Follow()
		behind.Set(served.Known())
	}
	m.start()
	m.create("things", "example.com", "v2", "things")
	if got := statusText(m.ends("things")); got != migrated {
		t.Error(got)
	}
	if row := string(m.row("things.example.com", "default", "a").Value); !strings.Contains(row, `"example.com/v2"`) {
		t.Errorf("it is stored as %s", row)
	}
}

// TestMigrationByOthers: an apply of nothing but the name, which a stock controller-manager sends for each object,
// has the object stored again too, and changes nothing else.
func TestMigrationByOthers(t *testing.T) {
	keys := storetest.NewTestSealer("one")
	m := newMigrating(t, keys)
	m.define("v1", "")
	const secret, thing = "/api/v1/namespaces/default/secrets", "/apis/example.com/v2/namespaces/default/things"
	made := map[string][]byte{
		secret + "/s": m.Must("POST", secret, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"k":"djE="}}`),
		thing + "/t":  m.Must("POST", thing, `{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"t"},"spec":{"text":"v1"}}`),
	}
	keys.SetKeys("two", "one")
	m.define("v2", "")
	for path, was := range made {
		var o struct {
			APIVersion, Kind string
			Metadata         struct{ UID, ResourceVersion string }
		}
		if err := json.Unmarshal(was, &o); err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"uid":%q,"resourceVersion":%q}}`, o.APIVersion, o.Kind, o.Metadata.UID, o.Metadata.ResourceVersion)
		now := m.Must("PATCH", path+"?fieldManager=storage-version-migrator-controller", body, "Content-Type", "application/apply-patch+yaml")
		if a, b := revisionOut(t, was), revisionOut(t, now); a != b {
			t.Errorf("before %s\nafter %s", a, b)
		}
	}
	if _, key, _, _ := sqlstore.SealedBy(m.row("secrets", "default", "s").Value); key != "two" {
		t.Errorf("the secret is encrypted with the key %q", key)
	}
	if row := m.row("things.example.com", "default", "t"); !strings.Contains(string(row.Value), `"apiVersion":"example.com/v2","kind"`) {
		t.Errorf("the custom object is stored as %s", row.Value)
	}
}

// TestMigrationsInV1beta1: releases that serve migrations in v1beta1, which name no version of their resource, do them and
// report in that version.
func TestMigrationsInV1beta1(t *testing.T) {
	const path = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations"
	for _, release := range []string{"1.35", "1.36"} {
		t.Run(release, func(t *testing.T) {
			keys := storetest.NewTestSealer("one")
			m := newMigratingIn(t, keys, "--emulated-version="+release, "--runtime-config=storagemigration.k8s.io/v1beta1", "--feature-gates=StorageVersionMigrator=true")
			m.work.Clock = func() time.Time { return time.Now().Add(time.Hour) }
			m.Must("POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"s"},"data":{"k":"djEyMw=="}}`)
			m.define("v1", "")
			m.Must("POST", "/apis/example.com/v1/namespaces/default/things", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"text":"b"}}`)
			m.define("v2", "")
			keys.SetKeys("two", "one")
			m.start()
			for name, c := range map[string]struct{ resource, want string }{
				"secrets": {`{"resource":"secrets"}`, "Running=False StorageVersionMigrationInProgress, Succeeded=True StorageVersionMigrationSucceeded"},
				"things":  {`{"group":"example.com","resource":"things"}`, "Running=False StorageVersionMigrationInProgress, Succeeded=True StorageVersionMigrationSucceeded"},
				"unknown": {`{"group":"example.com","resource":"others"}`, "Failed=True StorageVersionMigrationFailed resource does not exist in discovery"},
			} {
				m.Must("POST", path, `{"metadata":{"name":"`+name+`"},"spec":{"resource":`+c.resource+`}}`)
				var got storagemigrationv1beta1.StorageVersionMigration
				servertest.Eventually(t, func() bool {
					got = storagemigrationv1beta1.StorageVersionMigration{}
					if err := json.Unmarshal(m.Must("GET", path+"/"+name, ""), &got); err != nil {
						t.Fatal(err)
					}
					last := len(got.Status.Conditions) - 1
					return last >= 0 && got.Status.Conditions[last].Type != string(storagemigrationv1beta1.MigrationRunning)
				})
				var parts []string
				for _, c := range got.Status.Conditions {
					if c.LastTransitionTime.IsZero() {
						t.Errorf("%s: the condition %s has no time", name, c.Type)
					}
					parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, c.Message)))
				}
				if text := strings.Join(parts, ", "); text != c.want {
					t.Errorf("%s: %s", name, text)
				}
			}
			if _, key, _, _ := sqlstore.SealedBy(m.row("secrets", "default", "s").Value); key != "two" {
				t.Errorf("the Secret is encrypted with the key %q", key)
			}
			if row := m.row("things.example.com", "default", "a"); !strings.Contains(string(row.Value), `"apiVersion":"example.com/v2"`) {
				t.Errorf("the custom resource is stored as %s", row.Value)
			}
		})
	}
}
