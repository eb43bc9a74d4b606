package e2e

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/codecs/protobuf"
	samples "github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
)

// importAnswer has the fields of the output of import --output json that tests check.
type importAnswer struct {
	SourceRevision, Revision, Objects, Claims, Undecodable int64
	Reused, DryRun, Refused, Done, InUse                   bool
	Left                                                   []struct {
		Why  string
		Keys int64
	}
	Resources     []struct{ Name string }
	ResourcesLeft []struct{ Resource, Reason string }
	Problems      []struct{ Key, Reason string }
	Warnings      []string
}

// importInto runs the command and returns its answer, its log, and its exit error.
func importInto(t testing.TB, args ...string) (a importAnswer, errOut string, err error) {
	t.Helper()
	errOut, err = answered(t, &a, append([]string{"import", "--output", "json"}, args...)...)
	return a, errOut, err
}

// answered runs a command of the binary that answers in JSON, where it answers at all. It
// returns the log of the command and its exit error.
func answered(t testing.TB, answer any, args ...string) (errOut string, err error) {
	t.Helper()
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, args...)
	cmd.Dir = t.TempDir()
	var out, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &e
	err = cmd.Run()
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), answer); err != nil {
			t.Fatalf("%v: %v in %s", args, err, out.String())
		}
	}
	return e.String(), err
}

// active are kinds by which a server does something, so that objects of them are not made at
// random here; the tests of server/transfer do that.
var active = map[string]bool{
	"MutatingWebhookConfiguration": true, "ValidatingWebhookConfiguration": true, "ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true,
	"MutatingAdmissionPolicy": true, "MutatingAdmissionPolicyBinding": true, "CustomResourceDefinition": true, "APIService": true, "FlowSchema": true,
	"PriorityLevelConfiguration": true, "Namespace": true, "StorageVersionMigration": true, "StorageVersion": true,
}

// arrived is an object of the old cluster, and where the new one is to show it.
type arrived struct {
	path string
	key  string          // where the old cluster kept it
	kind *kinds.Resource // nil for a custom one
	want any             // without empty values
}

// fill makes an object of each built-in kind in a source.
func fill(t *testing.T, k *harness.Kine, seal func(key string, value []byte) []byte) (all []arrived, others int) {
	t.Helper()
	catalogue := kinds.NewCatalogue(builtin.Resources())
	for i, r := range catalogue.Known() {
		if r.Storage == nil || catalogue.ByStorage(r.Storage.Key) != r {
			continue
		}
		obj := r.New()
		if !active[r.Kind] {
			samples.Fill(rand.New(rand.NewSource(int64(i))), obj)
			release.Default.View().Clear(obj) // what the release lacks would be left out
		}
		namespace := ""
		if r.Namespaced {
			namespace = "shop"
		}
		*metaOf(obj) = metav1.ObjectMeta{
			Name: "x", Namespace: namespace, UID: types.UID(fmt.Sprint("uid-", i)), Generation: int64(i), CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
			Labels:        map[string]string{"a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Apply", APIVersion: r.APIVersion(), FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{"f:a":{}}}}`)}}},
		}
		obj.GetObjectKind().SetGroupVersionKind(r.GVK())
		var value []byte
		var err error
		if r.Kind == "CustomResourceDefinition" || r.Kind == "APIService" {
			continue // in addition to the others, as JSON
		}
		if value, err = (protobuf.Codec{}).Encode(nil, obj); err != nil {
			t.Fatal(err)
		}
		key := r.RegistryKey(namespace, "x")
		revision := k.Put(key, seal(key, value))
		switch r.Kind {
		case "Event":
			continue // left out
		case "FlowSchema", "LeaseCandidate":
			others++ // which a server writes to, or takes away, as soon as it starts
			continue
		}
		if d := r.Storage.Default; d != nil {
			d(obj)
		}
		obj.SetResourceVersion(fmt.Sprint(revision))
		all = append(all, arrived{path: apiPath(r, namespace), key: key, kind: r, want: shown(t, obj)})
	}
	return all, others
}

func metaOf(obj kinds.Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

func apiPath(r *kinds.Resource, namespace string) string {
	path := "/apis/" + r.APIVersion()
	if r.Group == "" {
		path = "/api/" + r.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.Plural + "/x"
}

// shown returns the tree of an object, without empty values.
func shown(t *testing.T, obj any) any {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return treeOf(t, data)
}

func treeOf(t *testing.T, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return withoutEmpty(v)
}

func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if e = withoutEmpty(e); e == nil || e == "" {
				delete(v, name)
			} else {
				v[name] = e
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	}
	return v
}

// asAdministrator reads with the certificate in the data directory of a server.
func asAdministrator(t *testing.T, s *harness.Server) func(path string) (int, []byte) {
	t.Helper()
	roots, err := s.CA()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.LoadX509KeyPair(filepath.Join(s.DataDir, "admin.crt"), filepath.Join(s.DataDir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}}}
	t.Cleanup(client.CloseIdleConnections)
	return func(path string) (int, []byte) { return fetched(t, client, s.URL+path) }
}

func fetched(t *testing.T, client *http.Client, url string) (int, []byte) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

const importedDefinition = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{"name":"widgets.example.com","uid":"crd","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"group":"example.com","version":"v1","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"scope":"Namespaced","validation":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},"versions":[{"name":"v1","served":true,"storage":true}],"conversion":{"strategy":"None"},"preserveUnknownFields":false},"status":{"conditions":[{"type":"NamesAccepted","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"NoConflicts","message":"no conflicts found"},{"type":"Established","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"InitialNamesAccepted","message":"the initial names have been accepted"}],"acceptedNames":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"storedVersions":["v1"]}}` + "\n"

const importedWidget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"shop","uid":"w","generation":7,"creationTimestamp":"2026-01-01T00:00:00Z","finalizers":["example.com/f"]},"spec":{"big":9007199254740993,"half":0.5,"deep":{"a":[1,"2",null,{"b":false}]}}}` + "\n"

// TestImport: the objects of k3s, of every built-in kind, custom, encrypted, deleted, are imported into
// both databases, from a file of kine and from a snapshot of etcd, and served as they were, and
// clients continue from there; an export has the same objects.
func TestImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := harness.NewKine(t, filepath.Join(dir, "state.db"))
	secret := bytes.Repeat([]byte{7}, 32)
	config := filepath.Join(dir, "encryption.json") // as k3s writes it
	if err := os.WriteFile(config, []byte(`{"kind":"EncryptionConfiguration","apiVersion":"apiserver.config.k8s.io/v1","resources":[{"resources":["secrets"],"providers":[{"aescbc":{"keys":[{"name":"aescbckey","secret":"`+base64.StdEncoding.EncodeToString(secret)+`"}]}},{"identity":{}}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, others := fill(t, k, func(key string, value []byte) []byte {
		if !strings.HasPrefix(key, "/registry/secrets/") {
			return value
		}
		return sealCBC(t, secret, value)
	})
	k.Put("/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com", []byte(importedDefinition))
	revision := k.Put("/registry/example.com/widgets/shop/w", []byte(importedWidget))
	widget := treeOf(t, []byte(importedWidget)).(map[string]any)
	widget["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(revision)
	objects = append(objects, arrived{path: "/apis/example.com/v1/namespaces/shop/widgets/w", key: "/registry/example.com/widgets/shop/w", want: widget})
	k.Put("/registry/masterleases/10.0.0.1", []byte("k8s\x00"))
	k.Put("/registry/ranges/serviceips", []byte("k8s\x00"))
	k.Delete("/registry/configmaps/shop/gone", k.Put("/registry/configmaps/shop/gone", []byte("nonsense")))
	head := k.Put("/registry/health", []byte("{}"))

	snapshot := asSnapshot(t, k.Path, dir)
	for name, url := range map[string]string{"sqlite": "sqlite:" + filepath.Join(dir, "rowlock.db"), "postgres": createDB(t, sharedPostgres(t), "arrived")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(dir, "data-"+name)
			source, out := k.Path, "etcd-snapshot"
			if name == "postgres" {
				source, out = snapshot, "kine"
			}
			if a, errOut, err := importInto(t, source, "--store", url, "--data-dir", data); err == nil || !a.Refused || a.Undecodable != 1 || !strings.Contains(errOut, "--encryption-provider-config") {
				t.Fatalf("without keys: %v, %+v, %s", err, a, errOut)
			}
			args := []string{source, "--store", url, "--data-dir", data, "--encryption-provider-config", config}
			if a, errOut, err := importInto(t, append(args, "--dry-run")...); err != nil || !a.DryRun || a.Objects != int64(len(objects)+others+1) {
				t.Fatalf("trial: %v, %+v, %s", err, a, errOut)
			}
			a, errOut, err := importInto(t, args...)
			if err != nil || a.Objects != int64(len(objects)+others+1) || a.SourceRevision != head || a.Revision <= head || len(a.Warnings) > 0 {
				t.Fatalf("%v, %+v, %s", err, a, errOut)
			}
			if _, errOut, err := importInto(t, args...); err == nil || !strings.Contains(errOut, "only an empty one can be filled") {
				t.Fatalf("again: %v, %s", err, errOut)
			}
			if a, errOut, err := importInto(t, append(args, "--dry-run")...); err != nil || !a.DryRun || !a.InUse || a.Objects != int64(len(objects)+others+1) {
				t.Fatalf("trial into a database in use: %v, %+v, %s", err, a, errOut)
			}
			if left, err := filepath.Glob(filepath.Join(data, "import*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %q, %v", left, err)
			}
			wantClean(t, url)
			sameExported(t, url, out, objects)
			sameServed(t, data, url, objects, a)
		})
	}
}

// sameServed starts a server and compares every object.
func sameServed(t *testing.T, data, url string, objects []arrived, a importAnswer) {
	t.Helper()
	s := harness.StartT(t, harness.Options{DataDir: data, Store: url, Args: []string{
		"--controllers=-*", "--runtime-config=api/all=true", "--feature-gates=ClusterTrustBundle=true,StorageVersionMigrator=true,DynamicResourceAllocation=true,MutatingAdmissionPolicy=true,VolumeAttributesClass=true,CoordinatedLeaderElection=true,MultiCIDRServiceAllocator=true,StorageVersionAPI=true",
	}})
	get := asAdministrator(t, s)
	for _, o := range objects {
		code, body := get(o.path)
		if code != http.StatusOK {
			t.Errorf("%s: %d %s", o.path, code, body)
			continue
		}
		if diff := cmp.Diff(o.want, treeOf(t, body)); diff != "" {
			t.Errorf("%s: %s", o.path, diff)
		}
	}
	if code, body := get(fmt.Sprintf("/api/v1/namespaces/shop/configmaps?watch=1&timeoutSeconds=1&resourceVersion=%d", a.SourceRevision)); !strings.Contains(string(body), `"code":410`) {
		t.Errorf("a watch from the old cluster: %d %s", code, body)
	}
	kubectl := s.Kubectl(t)
	kubectl.Run("create", "namespace", "shop")
	kubectl.Run("create", "configmap", "after", "-n", "shop")
	kubectl.Run("annotate", "secret", "x", "-n", "shop", "after=1")
}

// sealCBC encrypts a value as a stock server does with aescbc.
func sealCBC(t *testing.T, secret, value []byte) []byte {
	t.Helper()
	block, err := aes.NewCipher(secret)
	if err != nil {
		t.Fatal(err)
	}
	padding := aes.BlockSize - len(value)%aes.BlockSize
	body := append(bytes.Clone(value), bytes.Repeat([]byte{byte(padding)}, padding)...)
	iv := bytes.Repeat([]byte{9}, aes.BlockSize)
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(body, body)
	return append(append([]byte("k8s:enc:aescbc:v1:aescbckey:"), iv...), body...)
}
