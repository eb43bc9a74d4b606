package verbs_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestTimesOfManagedFields: an entry has the time of its manager's last write of its fields, also if
// these are the same fields with other values. A write that changes nothing changes no time.
func TestTimesOfManagedFields(t *testing.T) {
	var now atomic.Int64
	begun := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	now.Store(begun.UnixNano())
	s := servertest.Start(t, servertest.Plain(nil), func(c *server.Config) {
		c.Clock = func() time.Time { return time.Unix(0, now.Load()) }
	})
	const path = "/api/v1/namespaces/kube-system/configmaps"
	const apply = "application/apply-patch+yaml"
	object := func(value string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"l"},"data":{"a":"` + value + `"}}`
	}
	revision := ""
	for _, step := range []struct {
		name, method, path, body, header string
		moves                            bool
	}{
		{"is made", "POST", path, object("10"), "", true},
		{"the same", "PUT", path + "/l", object("10"), "", false},
		{"another value", "PUT", path + "/l", object("11"), "", true},
		{"another value to see what would be", "PUT", path + "/l?dryRun=All", object("12"), "", true},
		{"the same to see what would be", "PUT", path + "/l?dryRun=All", object("11"), "", false},
		{"the same patch", "PATCH", path + "/l", `{"data":{"a":"11"}}`, "application/merge-patch+json", false},
		{"another patch", "PATCH", path + "/l", `{"data":{"a":"13"}}`, "application/merge-patch+json", true},
		{"applied", "PATCH", path + "/m?fieldManager=m", strings.Replace(object("10"), `"l"`, `"m"`, 1), apply, true},
		{"applied again", "PATCH", path + "/m?fieldManager=m", strings.Replace(object("10"), `"l"`, `"m"`, 1), apply, false},
		{"another value applied", "PATCH", path + "/m?fieldManager=m", strings.Replace(object("11"), `"l"`, `"m"`, 1), apply, true},
	} {
		before := time.Unix(0, now.Load())
		at := time.Unix(0, now.Add(int64(time.Minute))).UTC()
		header := []string{}
		if step.header != "" {
			header = []string{"Content-Type", step.header}
		}
		var got metav1.PartialObjectMetadata
		if err := json.Unmarshal(s.Must(step.method, step.path, step.body, header...), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.ManagedFields) != 1 {
			t.Fatalf("%s: %v", step.name, got.ManagedFields)
		}
		moved := got.ManagedFields[0].Time.Time.Equal(at)
		if moved != step.moves || !moved && got.ManagedFields[0].Time.After(before) {
			t.Errorf("%s: at %s the entry has %s", step.name, at, got.ManagedFields[0].Time)
		}
		if dry := strings.Contains(step.path, "dryRun"); !dry && (got.ResourceVersion == revision) == step.moves {
			t.Errorf("%s: revision %s after %s", step.name, got.ResourceVersion, revision)
		} else if !dry {
			revision = got.ResourceVersion
		}
	}
}

// TestHeartbeats: a change after the metadata is encoded once, whatever the time, and an update
// without a change writes nothing, wherever the resource version is.
func TestHeartbeats(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	s := servertest.Start(t, servertest.Plain(nil), func(c *server.Config) {
		c.Clock = func() time.Time { return time.Unix(0, now.Load()) }
		c.Controllers.Runs = func(name string) bool { return name == "customresourcedefinitions" }
	})
	s.Must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"lamps.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"lamps","kind":"Lamp"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"data":{"type":"object","properties":{"a":{"type":"string"}}}}}}}]}}`)
	const lamps = "/apis/example.com/v1/namespaces/default/lamps"
	servertest.Eventually(t, func() bool { return s.Do("GET", lamps, "").Code == http.StatusOK })
	// This is the last that is written of a definition, which would be counted too.
	servertest.Eventually(t, func() bool {
		return s.Do("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com", "").Code == http.StatusOK
	})
	encoded := func() int64 {
		return s.Cache.JSON().Count(jsoncodec.Encode, jsoncodec.Fast) + s.Cache.JSON().Count(jsoncodec.Encode, jsoncodec.Standard)
	}
	for path, kind := range map[string]string{"/api/v1/namespaces/default/configmaps": `"apiVersion":"v1","kind":"ConfigMap"`, lamps: `"apiVersion":"example.com/v1","kind":"Lamp"`} {
		s.Must("POST", path, `{`+kind+`,"metadata":{"name":"x","labels":{"l":"0"}},"data":{"a":"0"}}`)
		revision := ""
		for _, step := range []struct {
			patch string
			moves bool
			most  int64 // times that it is encoded
		}{
			{`{"data":{"a":"1"}}`, true, 1}, {`{"data":{"a":"2"}}`, true, 1}, {`{"data":{"a":"2"}}`, false, 1},
			{`{"metadata":{"labels":{"l":"3"}}}`, true, 2}, {`{"metadata":{"labels":{"l":"4"}}}`, true, 2}, {`{"metadata":{"labels":{"l":"4"}}}`, false, 1},
		} {
			now.Add(int64(time.Minute))
			before := encoded()
			var got metav1.PartialObjectMetadata
			if err := json.Unmarshal(s.Must("PATCH", path+"/x", step.patch, "Content-Type", "application/merge-patch+json"), &got); err != nil {
				t.Fatal(err)
			}
			if (got.ResourceVersion != revision) != step.moves || !got.ManagedFields[0].Time.Time.Equal(time.Unix(0, now.Load())) && step.moves {
				t.Errorf("%s, %s: revision %s after %s, %v", path, step.patch, got.ResourceVersion, revision, got.ManagedFields)
			}
			if n := encoded() - before; n > step.most {
				t.Errorf("%s, %s: encoded %d times", path, step.patch, n)
			}
			revision = got.ResourceVersion
		}
	}
}
