package verbs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// decides answers every question alike.
type decides struct {
	decision authx.Decision
	reason   string
	err      error
}

func (d decides) Authorize(context.Context, *authx.Attributes) (authx.Decision, string, error) {
	return d.decision, d.reason, d.err
}

// TestUnsafeDelete deletes with the option to ignore what cannot be read.
func TestUnsafeDelete(t *testing.T) {
	f := newFixture(t)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"c"}}`)
	key := sqlstore.Key{Resource: "configmaps", Namespace: "a", Name: "broken"}
	if _, err := f.store.Write(t.Context(), sqlstore.Op{Verb: sqlstore.Create, Key: key, Value: []byte(`{"kind":`)}); err != nil {
		t.Fatal(err)
	}
	const (
		unsafe    = `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`
		forbidden = `configmaps "broken" is forbidden: `
		invalid   = "ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: "
	)
	may := decides{decision: authx.Allow}
	for _, c := range []struct {
		name       string
		off        bool
		authorizer authx.Authorizer
		url        string
		body       string
		code       int
		message    string
	}{
		{"the gate is off", true, may, "/broken", unsafe, 500, "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /registry/configmaps/a/broken, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision="},
		{"no option", false, may, "/broken", `{}`, 500, "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /registry/configmaps/a/broken, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision="},
		{"nobody to ask", false, nil, "/broken", unsafe, 500, "Internal error occurred: no authorizer provided, unable to authorize unsafe delete"},
		{"not permitted", false, decides{reason: "no rule"}, "/broken", unsafe, 403, forbidden + `not permitted to do "unsafe-delete-ignore-read-errors", reason: no rule`},
		{"undecided", false, decides{err: errors.New("down")}, "/broken", unsafe, 403, forbidden + `error while checking permission for "unsafe-delete-ignore-read-errors", down`},
		{"other options", false, may, "/broken", `{"ignoreStoreReadErrorWithClusterBreakingPotential":true,"dryRun":["All"]}`, 422,
			`DeleteOptions.meta.k8s.io "" is invalid: ` + invalid + "cannot be set together with .dryRun"},
		{"a collection", false, may, "", unsafe, 422,
			`DeleteOptions.meta.k8s.io "" is invalid: ` + invalid + "is not allowed with DELETECOLLECTION, try again after removing the option"},
		{"a readable object", false, may, "/c", unsafe, 422,
			`configmaps "c" is invalid: ` + invalid + "is exclusively used to delete corrupt object(s), try again by removing this option"},
		{"no object", false, may, "/none", unsafe, 404, `configmaps "none" not found`},
		{"an unreadable object", false, may, "/broken", unsafe, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.h.Feature = func(gate string) bool { return gate == "AllowUnsafeMalformedObjectDeletion" && !c.off }
			f.h.Writes.Authorizer = c.authorizer
			w := f.do("DELETE", configmaps+c.url, c.body)
			var got struct {
				Message string
				Details struct{ Name, Kind string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if w.Code != c.code || !strings.HasPrefix(got.Message, c.message) {
				t.Errorf("%d %s\nwant %d %s", w.Code, got.Message, c.code, c.message)
			}
			if c.code == 200 && (got.Details.Name != "broken" || got.Details.Kind != "ConfigMap") {
				t.Errorf("the answer is about %+v", got.Details)
			}
		})
	}
	f.want(404, "GET", configmaps+"/broken", "")
	f.want(200, "GET", configmaps+"/c", "")
}

// bounds counts the reads of the head, and calls before at each.
type bounds struct {
	sqlstore.Driver
	before atomic.Pointer[func()]
	reads  atomic.Int32
}

func (b *bounds) Bounds(ctx context.Context) (sqlstore.Bounds, error) {
	b.reads.Add(1)
	if before := b.before.Load(); before != nil {
		(*before)()
	}
	return b.Driver.Bounds(ctx)
}

// deletes counts the deletes that are admitted.
type deletes struct{ n *atomic.Int32 }

func (deletes) Name() string                        { return "deletes" }
func (deletes) Handles(op admission.Operation) bool { return op == admission.Delete }
func (d deletes) Validate(context.Context, *admission.Attributes) error {
	d.n.Add(1)
	return nil
}

// TestDeleteCollectionAgain: a repeated delete of a collection whose objects wait for finalizers reads the head
// of all writes once, and deletes an object that another server has replaced in the meantime.
func TestDeleteCollectionAgain(t *testing.T) {
	memory := storetest.NewShared()
	driver, admitted := &bounds{Driver: memory.Open()}, &atomic.Int32{}
	f, other := serverOn(t, driver, deletes{admitted}), serverOn(t, memory.Open())
	const objects = 50
	f.want(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"a"}}`)
	for i := range objects {
		f.want(201, "POST", configmaps, fmt.Sprintf(`{"metadata":{"name":"c%d","finalizers":["example.com/a"]}}`, i))
	}
	f.want(200, "DELETE", configmaps, "")
	before := driver.reads.Load()
	f.want(200, "DELETE", configmaps, "")
	if n := driver.reads.Load() - before; n == 0 || n > 10 {
		t.Errorf("the head was read %d times", n)
	}
	replace := sync.OnceFunc(func() {
		other.want(200, "PATCH", configmaps+"/c7", `{"metadata":{"finalizers":null}}`, "Content-Type", merge)
		other.want(404, "GET", configmaps+"/c7", "")
		other.want(201, "POST", configmaps, `{"metadata":{"name":"c7"}}`)
	})
	admitted.Store(0)
	driver.before.Store(new(func() {
		if admitted.Load() == objects { // none of them has been confirmed
			replace()
		}
	}))
	f.want(200, "DELETE", configmaps, "")
	if w := other.do("GET", configmaps+"/c7", ""); w.Code != 404 {
		t.Errorf("an object that was replaced during the delete: %d %s", w.Code, w.Body)
	}
	if n := len(other.want(200, "GET", configmaps, "")["items"].([]any)); n != objects-1 {
		t.Errorf("%d objects are left", n)
	}
}

// TestDeleteCollectionOfAnObjectThatKeepsChanging: a delete of a collection ends although another server changes a
// marked object each time that the delete is confirmed.
func TestDeleteCollectionOfAnObjectThatKeepsChanging(t *testing.T) {
	memory := storetest.NewShared()
	driver, admitted := &bounds{Driver: memory.Open()}, &atomic.Int32{}
	f, other := serverOn(t, driver, deletes{admitted}), serverOn(t, memory.Open())
	f.want(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"a"}}`)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"c","finalizers":["example.com/a"]}}`)
	f.want(200, "DELETE", configmaps, "")
	admitted.Store(0)
	var change sync.Mutex // the store also reads its bounds in the background: one read waits for the change of another
	var changes int32
	var ended bool
	driver.before.Store(new(func() {
		change.Lock()
		defer change.Unlock()
		if n := changes; !ended && n < admitted.Load() && n < 20 {
			changes++
			other.want(200, "PATCH", configmaps+"/c", fmt.Sprintf(`{"data":{"n":"%d"}}`, n), "Content-Type", merge)
		}
	}))
	f.want(200, "DELETE", configmaps, "")
	change.Lock()
	ended = true
	change.Unlock()
	if n := admitted.Load(); n != 2 {
		t.Errorf("the object was deleted %d times", n)
	}
}
