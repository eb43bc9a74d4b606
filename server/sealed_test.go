package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

const (
	secretsPath = "/api/v1/namespaces/default/secrets"
	inside      = "c3Ryb25nIG1hcmtlciBvZiBhIHRlc3Q="
)

func secretJSON(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q},"data":{"k":%q}}`, name, inside)
}

func revisionOf(t testing.TB, object []byte) string {
	t.Helper()
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(object, &o); err != nil || o.Metadata.ResourceVersion == "" {
		t.Fatalf("%v in %.200s", err, object)
	}
	return o.Metadata.ResourceVersion
}

// TestSealed: objects that are encrypted in the table are like all others, but that a write
// of the same counts once their key is an older one; that they cannot be written without a
// key, while they can be read; and that they are corrupt where their key is not there, until
// it is.
func TestSealed(t *testing.T) {
	memory, keys, log := storetest.NewShared(), storetest.NewTestSealer("one"), &storetest.Log{}
	start := func(keys sqlstore.Sealer) *servertest.Server {
		return servertest.Start(t, servertest.Idle, servertest.On(memory.Open(), sqlstore.Config{Sealer: keys}), func(c *server.Config) {
			c.Log = log.Logger()
			c.Feature = func(gate string) bool { return gate == "AllowUnsafeMalformedObjectDeletion" }
		})
	}
	s := start(keys)
	a := s.Must("POST", secretsPath, secretJSON("a"))
	if again := s.Must("PUT", secretsPath+"/a", string(a)); revisionOf(t, again) != revisionOf(t, a) {
		t.Error("a write of the same has changed something")
	}
	keys.SetKeys("two", "one")
	b := s.Must("PUT", secretsPath+"/a", string(a))
	if revisionOf(t, b) == revisionOf(t, a) {
		t.Error("a write of the same is not encrypted anew")
	}
	if again := s.Must("PATCH", secretsPath+"/a", `{}`, "Content-Type", "application/merge-patch+json"); revisionOf(t, again) != revisionOf(t, b) {
		t.Error("a patch of nothing has changed something")
	}
	row, err := memory.Open().Read(t.Context(), sqlstore.Key{Resource: "secrets", Namespace: "default", Name: "a"}, 0)
	if _, name, _, _ := sqlstore.SealedBy(row.Value); err != nil || name != "two" || bytes.Contains(row.Value, []byte(inside)) {
		t.Errorf("it is stored as %.80q, %v", row.Value, err)
	}

	// No key: memory is read, nothing is written, and everything else goes on.
	keys.Fail(errors.New("rpc error: the key server is away"))
	w := s.Do("POST", secretsPath, secretJSON("b"))
	if want := `Internal error occurred: rpc error: the key server is away`; w.Code != 500 || !strings.Contains(w.Body.String(), want) || strings.Contains(w.Body.String(), "two") {
		t.Errorf("%d %s, want %s and no name of a key", w.Code, w.Body, want)
	}
	s.Must("GET", secretsPath+"/a", "")
	s.Must("GET", secretsPath, "")
	s.Must("POST", "/api/v1/namespaces/default/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)
	keys.Fail(nil)
	s.Must("POST", secretsPath, secretJSON("b"))

	// A server that has only an older key.
	old := storetest.NewTestSealer("one")
	other := start(old)
	const corrupt = `StorageError: corrupt object, Code: 7, Key: /registry/secrets/default/a, ResourceVersion: 0, AdditionalErrorMsg: data from the storage is not transformable revision=0: no such key`
	for _, c := range []struct{ method, path, body string }{
		{"GET", secretsPath + "/a", ""}, {"PUT", secretsPath + "/a", string(b)}, {"DELETE", secretsPath + "/a", ""},
		{"GET", secretsPath, ""}, {"GET", secretsPath + "?resourceVersion=" + revisionOf(t, b) + "&resourceVersionMatch=Exact", ""},
	} {
		w := other.Do(c.method, c.path, c.body)
		if text := w.Body.String(); w.Code != 500 || !strings.Contains(text, corrupt) || strings.Contains(text, "two") || strings.Contains(text, inside) {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, text)
		}
	}
	other.Must("GET", "/api/v1/namespaces/default/configmaps/c", "")
	plain := servertest.Start(t, servertest.Idle, servertest.On(memory.Open(), sqlstore.Config{Sealer: storetest.NewTestSealer("one")})) // without the gate
	for path, want := range map[string]string{secretsPath + "/a": `"Internal error occurred: no such key"`, secretsPath: `"Internal error occurred: unable to transform key \"/registry/secrets/default/a\": no such key"`} {
		if w := plain.Do("GET", path, ""); w.Code != 500 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("without the gate, %s: %d %s, want %s", path, w.Code, w.Body, want)
		}
	}
	const unread = `{"apiVersion":"v1","kind":"DeleteOptions","ignoreStoreReadErrorWithClusterBreakingPotential":true}`
	away := storetest.NewTestSealer("one")
	away.Fail(fmt.Errorf("%w: the key server is away", sqlstore.ErrKeyUnavailable))
	waiting := start(away) // it does not know whether anything is wrong with b
	if w := waiting.Do("DELETE", secretsPath+"/b", unread); w.Code != 500 || !strings.Contains(w.Body.String(), "the key server is away") {
		t.Errorf("an unread delete while the key is away: %d %s", w.Code, w.Body)
	}
	s.Must("GET", secretsPath+"/b", "")
	other.Must("DELETE", secretsPath+"/b", unread)
	servertest.Eventually(t, func() bool { return s.Do("GET", secretsPath+"/b", "").Code == 404 })
	old.SetKeys("one", "two")
	servertest.Eventually(t, func() bool { return other.Do("GET", secretsPath+"/a", "").Code == 200 })
	if got := other.Must("GET", secretsPath+"/a", ""); !bytes.Contains(got, []byte(inside)) || revisionOf(t, got) != revisionOf(t, b) {
		t.Errorf("with the key it is %s", got)
	}
	other.Must("GET", secretsPath, "")
	if strings.Contains(log.String(), inside) {
		t.Error("the log has the secret")
	}
}

// closedSealer encrypts nothing, and for a while cannot even do that.
type closedSealer struct {
	sqlstore.NoEncryption
	away atomic.Bool
}

// unreachable returns the text of a plugin alone.
type unreachable struct{}

func (unreachable) Error() string        { return "rpc error: nobody answers" }
func (unreachable) Is(target error) bool { return target == sqlstore.ErrKeyUnavailable }

func (c *closedSealer) Seal(_ context.Context, key sqlstore.Key, plain []byte) ([]byte, error) {
	if c.away.Load() {
		return nil, &sqlstore.SealError{Key: key, Provider: "test", KeyName: "k", Err: unreachable{}}
	}
	return plain, nil
}

// TestStartWithoutKeys: a server whose keys are unavailable starts, and reports what it lacks.
func TestStartWithoutKeys(t *testing.T) {
	keys, log := &closedSealer{}, &storetest.Log{}
	keys.away.Store(true)
	s := servertest.Start(t, servertest.Idle, servertest.On(storetest.NewShared().Open(), sqlstore.Config{Sealer: keys}), func(c *server.Config) {
		c.Log = log.Logger()
	})
	if got := string(s.Must("GET", "/readyz?verbose", "")); !strings.Contains(got, "cannot be written: ") || !strings.Contains(got, "namespaces/default") {
		t.Errorf("readyz says %s", got)
	}
	s.Must("GET", "/api/v1/namespaces", "")
	keys.away.Store(false)
	s.Must("POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"later"}}`)
	if !strings.Contains(log.String(), "or keys are unavailable") {
		t.Errorf("the log is %s", log)
	}
}
