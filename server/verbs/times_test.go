package verbs_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestTimesOfManagedFields: an entry says when its manager wrote its fields last, also where
// they are the same fields with other values. A write that changes nothing changes no time.
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
