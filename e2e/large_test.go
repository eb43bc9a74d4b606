package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// The beginning and the end of the text of large objects.
const (
	largeFrom = "begin-"
	largeTo   = "-end"
)

// largeSizes are --max-object-bytes, and how many bytes the text of an object has: in every check more than the default, in the
// long tests as many as a large workflow.
func largeSizes() (largest, n int) {
	if os.Getenv("ROWLOCK_LARGE_OBJECTS") != "" {
		return 24 << 20, 20 << 20
	}
	return 5 << 20, 4 << 20
}

const larges = "/apis/large.example.com/v1/namespaces/default/larges"

// largeText returns a text of n bytes.
func largeText(n int) string {
	return largeFrom + strings.Repeat("x", n-len(largeFrom)-len(largeTo)) + largeTo
}

func largeObject(name string, n int) string {
	return fmt.Sprintf(`{"apiVersion":"large.example.com/v1","kind":"Large","metadata":{"name":%q},"data":{"text":%q}}`, name, largeText(n))
}

// isLarge reports whether an answer has all of a text of n bytes.
func isLarge(answer []byte, n int) bool {
	from := bytes.Index(answer, []byte(largeFrom))
	to := bytes.Index(answer, []byte(largeTo))
	return from >= 0 && to-from == n-len(largeTo)
}

// TestLargeObjects takes objects that are larger than the default of --max-object-bytes through all verbs, forms and commands, on
// both databases.
func TestLargeObjects(t *testing.T) {
	t.Parallel()
	largest, n := largeSizes()
	pg := sharedPostgres(t)
	for name, store := range map[string]string{"sqlite": "", "postgres": createDB(t, pg, "large")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
			if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: RequestResponse\n  resources: [{group: large.example.com, resources: [larges]}]\n  verbs: [create]\n- level: None\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			s := harness.StartT(t, harness.Options{Store: store, Dir: dir, Args: []string{
				"--max-object-bytes", fmt.Sprint(largest), "--backup-dir", filepath.Join(dir, "backup"), "--cache-file-from=1", "--feature-gates=CBORServingAndStorage=true",
				"--audit-policy-file", policy, "--audit-log-path", log,
			}})
			a := newAPI(t, s)
			defined(t, a, definition("large.example.com", "larges", "Large", "v1", "v2"))
			writesLarge(t, a, n)
			readsLarge(t, a, n, name == "sqlite")
			if data, err := os.ReadFile(log); err != nil || !isLarge(data, n) {
				t.Errorf("the audit log does not have the object: %v", err)
			}
			if name == "sqlite" {
				largeBounds(t, a, largest)
			}
			url := store
			if url == "" {
				url = "sqlite:" + filepath.Join(s.DataDir, "rowlock.db")
			}
			revision := largeVersion(t, want(t, a, http.StatusOK, http.MethodGet, larges+"/made", "", ""))
			eventually(t, "the backup of it", func() bool { return backedUp(t, a) >= number(t, revision) })
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			again, err := s.Again(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			again.EndWith(t)
			if got := want(t, newAPI(t, again), http.StatusOK, http.MethodGet, larges+"/made", "", ""); !isLarge(got, n) {
				t.Error("the object is another one after a restart")
			}
			if err := again.Stop(); err != nil {
				t.Fatal(err)
			}
			commandsOnLarge(t, dir, url, revision, n)
			if name == "sqlite" {
				copyLarge(t, url, largest, n)
			}
		})
	}
}

func largeVersion(t *testing.T, object []byte) string {
	t.Helper()
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	unmarshal(t, object, &o)
	return o.Metadata.ResourceVersion
}

// writesLarge leaves an object made with a text of n bytes.
func writesLarge(t *testing.T, a *api, n int) {
	const merge, operations, applied = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
	write := func(method, path, typ, body string, code int) {
		t.Helper()
		if got := want(t, a, code, method, path, typ, body); !isLarge(got, n) {
			t.Errorf("%s %s %s: %.300s", method, path, typ, got)
		}
	}
	write("POST", larges, "application/json", largeObject("made", n), 201)
	rv := largeVersion(t, want(t, a, 200, "GET", larges+"/made", "", ""))
	write("PUT", larges+"/made", "application/json", strings.Replace(largeObject("made", n), `"name":`, `"resourceVersion":"`+rv+`","name":`, 1), 200)
	write("PATCH", larges+"/made", merge, `{"data":{"patched":1}}`, 200)
	write("PATCH", larges+"/made", operations, `[{"op":"add","path":"/data/added","value":1},{"op":"test","path":"/data/patched","value":1}]`, 200)
	write("PATCH", larges+"/made?fieldManager=a", applied, `{"apiVersion":"large.example.com/v1","kind":"Large","metadata":{"name":"made","labels":{"a":"b"}}}`, 200)
	write("PATCH", larges+"/made?dryRun=All", merge, `{"data":{"never":1}}`, 200)
	write("PATCH", larges+"/applied?fieldManager=a", applied, largeObject("applied", n), 201)
	write("PATCH", larges+"/applied?fieldManager=a", applied, strings.Replace(largeObject("applied", n), `"name":`, `"labels":{"c":"d"},"name":`, 1), 200)
	write("PATCH", larges+"/applied", merge, `{"data":{"text":"`+largeText(n)+`"}}`, 200)
	write("POST", strings.Replace(larges, "v1", "v2", 1), "application/yaml", "apiVersion: large.example.com/v2\nkind: Large\nmetadata: {name: yaml}\ndata:\n  text: "+largeText(n)+"\n", 201)
	if got := want(t, a, 200, "DELETE", larges+"/yaml", "", ""); !strings.Contains(string(got), "Success") {
		t.Errorf("DELETE: %.300s", got)
	}
	want(t, a, 200, "DELETE", larges+"?fieldSelector=metadata.name%3Dapplied", "", "")
	want(t, a, 404, "GET", larges+"/applied", "", "")
}

// readsLarge reads the object made, in all forms if everything is asked for.
func readsLarge(t *testing.T, a *api, n int, everything bool) {
	rv := largeVersion(t, want(t, a, 200, "GET", larges+"/made", "", ""))
	for _, path := range []string{
		larges, larges + "?limit=1", larges + "?resourceVersionMatch=Exact&resourceVersion=" + rv,
		strings.Replace(larges, "v1", "v2", 1) + "/made", larges + "/made?pretty=true",
		larges + "?watch=1&timeoutSeconds=1", larges + "?watch=1&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
		"/apis/history.rowlock.dev/v1/namespaces/default/revisions?content=true&limit=1&fieldSelector=object.resource%3Dlarges.large.example.com%2Cobject.name%3Dmade",
	} {
		if got := want(t, a, 200, "GET", path, "", ""); !isLarge(got, n) {
			t.Errorf("%s: %.300s", path, got)
		}
	}
	if everything {
		const meta = ";v=v1;g=meta.k8s.io"
		for _, accept := range []string{"application/yaml", "application/cbor", "application/json;as=Table" + meta, "application/json;as=PartialObjectMetadata" + meta} {
			for _, path := range []string{larges + "/made", larges} {
				if path == larges {
					accept = strings.Replace(accept, "Metadata;", "MetadataList;", 1)
				}
				got := accepted(t, a, path, accept)
				if whole := !strings.Contains(accept, "as="); whole != isLarge(got, n) || !bytes.Contains(got, []byte("made")) {
					t.Errorf("%s as %s: %.300q", path, accept, got)
				}
			}
		}
		revisions := "/apis/apps/v1/namespaces/default/controllerrevisions"
		want(t, a, 201, "POST", revisions, "application/json", `{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"built-in"},"revision":1,"data":{"text":"`+largeText(n)+`"}}`)
		for _, path := range []string{revisions, revisions + "/built-in"} {
			if got := accepted(t, a, path, "application/vnd.kubernetes.protobuf"); !isLarge(got, n) {
				t.Errorf("%s as Protobuf: %.300q", path, got)
			}
		}
	}
	followsLarge(t, a, largeVersion(t, accepted(t, a, larges, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")), n)
}

func accepted(t *testing.T, a *api, path, accept string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	r.Header.Set("Accept", accept)
	resp, err := a.c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%s as %s: %d, %v: %.300s", path, accept, resp.StatusCode, err, got)
	}
	return got
}

// followsLarge watches from the newest revision while the object changes.
func followsLarge(t *testing.T, a *api, rv string, n int) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.s.URL+larges+"?watch=1&resourceVersion="+rv, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	resp, err := a.c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for i := range 3 {
		want(t, a, 200, "PATCH", larges+"/made", "application/merge-patch+json", fmt.Sprintf(`{"data":{"turn":%d}}`, i))
		line, err := in.ReadBytes('\n')
		if err != nil || !isLarge(line, n) || !bytes.Contains(line, []byte(fmt.Sprintf(`"turn":%d`, i))) {
			t.Fatalf("event %d: %v: %.300s", i, err, line)
		}
	}
}

// largeBounds writes an object and a body as large as they may be, and one byte larger.
func largeBounds(t *testing.T, a *api, largest int) {
	refused := func(answer []byte, limit int) {
		t.Helper()
		if !strings.Contains(string(answer), fmt.Sprintf("limit is %d", limit)) {
			t.Errorf("the error does not name the limit of %d: %.300s", limit, answer)
		}
	}
	// An object that is too large with the owners of its fields is stored without, so its size is that of its text and of what
	// does not change.
	n := largest - 250
	made := want(t, a, 201, "POST", larges, "application/json", largeObject("bound", n))
	var o struct {
		Metadata struct {
			ResourceVersion string
			ManagedFields   []json.RawMessage
		}
	}
	unmarshal(t, made, &o)
	stored := len(bytes.TrimSpace(made)) - len(`"resourceVersion":"",`) - len(o.Metadata.ResourceVersion)
	if len(o.Metadata.ManagedFields) > 0 {
		t.Fatal("the owners of fields are stored: this test needs an object that is closer to the bound")
	}
	n += largest - stored
	with := func(n int) string {
		return strings.Replace(largeObject("bound", n), `"name":`, `"resourceVersion":"`+o.Metadata.ResourceVersion+`","name":`, 1)
	}
	refused(want(t, a, 413, "PUT", larges+"/bound", "application/json", with(n+1)), largest)
	want(t, a, 200, "PUT", larges+"/bound", "application/json", with(n))
	want(t, a, 200, "DELETE", larges+"/bound", "", "")

	small := largeObject("padded", 100)
	refused(want(t, a, 413, "POST", larges, "application/json", small+strings.Repeat(" ", 2*largest-len(small)+1)), 2*largest)
	want(t, a, 201, "POST", larges, "application/json", small+strings.Repeat(" ", 2*largest-len(small)))
	want(t, a, 200, "DELETE", larges+"/padded", "", "")
}

func number(t *testing.T, revision string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(revision, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// backedUp returns the last revision that the backup has, or 0.
func backedUp(t *testing.T, a *api) int64 {
	t.Helper()
	var revision float64
	for line := range strings.Lines(string(want(t, a, http.StatusOK, http.MethodGet, "/metrics", "", ""))) {
		if _, err := fmt.Sscanf(line, "rowlock_backup_revision %g", &revision); err == nil {
			return int64(revision)
		}
	}
	return 0
}

// copyLarge copies everything into another server.
func copyLarge(t *testing.T, url string, largest, n int) {
	target := harness.StartT(t, harness.Options{Args: []string{"--max-object-bytes", fmt.Sprint(largest)}})
	if a, errOut, err := copyInto(t, "--store", url, "--to-kubeconfig", target.Kubeconfig); err != nil || a.Total.Failed > 0 {
		t.Errorf("%v, %+v, %s", err, a.Total, errOut)
	}
	if got := want(t, newAPI(t, target), http.StatusOK, http.MethodGet, larges+"/made", "", ""); !isLarge(got, n) {
		t.Errorf("the copy has another object: %.300s", got)
	}
}

// commandsOnLarge runs the commands that read or fill databases.
func commandsOnLarge(t *testing.T, dir, url, revision string, n int) {
	file := func(name string) string { return filepath.Join(dir, name) }
	has := func(target string) {
		t.Helper()
		out, errOut, code := rowlock(t, "export", "--yaml", "--resource", "larges.large.example.com", "--store", target)
		if code != 0 || !isLarge([]byte(out), n) {
			t.Errorf("%s does not have the object: %d %s", target, code, errOut)
		}
	}
	runBinary(t, "store", "verify", "--store", url)
	runBinary(t, "store", "backup", file("whole"), "--store", url)
	runBinary(t, "store", "restore", file("whole"), "--store", "sqlite:"+file("restored.db"))
	has("sqlite:" + file("restored.db"))
	runBinary(t, "store", "restore", file("backup"), "--to", revision, "--store", "sqlite:"+file("followed.db"))
	has("sqlite:" + file("followed.db"))
	runBinary(t, "export", "kine", "sqlite:"+file("kine.db"), "--store", url)
	runBinary(t, "import", "kine+sqlite:"+file("kine.db"), "--store", "sqlite:"+file("imported.db"), "--data-dir", file("data"))
	has("sqlite:" + file("imported.db"))
}
