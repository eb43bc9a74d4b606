package e2e

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// mostBytes bounds the stripped binary on amd64, as tests build it: without the profile, which adds
// 0.4 MB. A change that needs more raises it here, and docs/performance.md gives the gain.
// docs/design/size.md describes the causes of the size, and the measures against it.
const mostBytes = 63_100_000

// TestBinarySize holds the binary to its size, and to what makes the difference of a ninth: the linker
// keeps exported methods without callers as soon as anything that is linked looks methods up by name.
func TestBinarySize(t *testing.T) {
	t.Parallel()
	path, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	program, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	size := uint64(len(file))
	for _, s := range program.Sections {
		if s.Name == ".symtab" || s.Name == ".strtab" || strings.HasPrefix(s.Name, ".debug_") {
			size -= s.FileSize
		}
	}
	t.Logf("%d bytes", size)
	if size > mostBytes && program.Machine == elf.EM_X86_64 && !strings.Contains(os.Getenv("ROWLOCK_BUILD_FLAGS"), "-race") {
		t.Errorf("the stripped binary has %d bytes, %d are allowed", size, mostBytes)
	}
	// The table of functions names them all, also in a stripped binary.
	if called := []byte("github.com/spf13/cobra.(*Command).ExecuteContext"); !bytes.Contains(file, called) {
		t.Errorf("%s is not found: are functions named in another way?", called)
	}
	for _, idle := range []string{
		"k8s.io/api/core/v1.(*Pod).XXX_DiscardUnknown", "k8s.io/api/core/v1.(*Pod).XXX_Marshal",
		"k8s.io/api/core/v1.Pod.SwaggerDoc", "github.com/google/gnostic-models/openapiv2.NewDocument", "github.com/google/gnostic-models/openapiv3.NewDocument",
	} {
		if bytes.Contains(file, []byte(idle)) {
			t.Errorf("%s, which nobody calls, is linked: go build -ldflags=-dumpdep ./cmd/rowlock says behind <ReflectMethod>, or before it, why", idle)
		}
	}
}

const sameTypes = "has the same types as another version, whose package is linked; see again in server/kinds/builtin"

// unwanted are packages that are not linked, each with what it would cost.
var unwanted = map[string]string{
	"html/template":                                                   "looks methods up by name; cmd/rowlock/internal/history/webpage escapes by itself",
	"golang.org/x/net/trace":                                          "uses html/template; grpc leaves it out with the tag grpcnotrace",
	"github.com/google/go-cmp/cmp":                                    "looks methods up by name; server/kinds/rules.Difference is for messages",
	"github.com/modern-go/reflect2":                                   "looks methods up by name; codecs/jsoniterator stands in for what uses it",
	"github.com/gogo/protobuf/proto":                                  "keeps lists of all messages; the API types do without it",
	"go.etcd.io/etcd/api/v3/etcdserverpb":                             "has a hundred messages; sqlstore/foreign/etcd reads the few that it asks for by itself",
	"k8s.io/api/admissionregistration/v1alpha1":                       sameTypes,
	"k8s.io/api/admissionregistration/v1beta1":                        sameTypes,
	"k8s.io/api/apidiscovery/v2beta1":                                 sameTypes,
	"k8s.io/api/authentication/v1beta1":                               sameTypes,
	"k8s.io/api/certificates/v1alpha1":                                sameTypes,
	"k8s.io/api/coordination/v1alpha2":                                sameTypes,
	"k8s.io/api/networking/v1beta1":                                   sameTypes,
	"k8s.io/api/resource/v1beta2":                                     sameTypes,
	"k8s.io/api/storage/v1alpha1":                                     sameTypes,
	"k8s.io/api/storage/v1beta1":                                      sameTypes,
	"k8s.io/api/discovery/v1beta1":                                    "is read by server/transfer/legacyapi",
	"k8s.io/api/node/v1alpha1":                                        "is read by server/transfer/legacyapi",
	"k8s.io/api/rbac/v1alpha1":                                        "is read by server/transfer/legacyapi",
	"k8s.io/api/authorization/v1beta1":                                "has one field of another name; authx/webhook writes it by itself",
	"k8s.io/api/flowcontrol/v1beta2":                                  "is read as v1; see server/transfer",
	"k8s.io/api/extensions/v1beta1":                                   "is read as apps/v1 and networking; see server/transfer",
	"k8s.io/api/rbac/v1beta1":                                         "is read as v1; see server/transfer",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1":   "is not served",
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi":            "has sentences that server/schema/descriptions embeds compressed",
	"k8s.io/kube-aggregator/pkg/generated/openapi":                    "has sentences that server/schema/descriptions embeds compressed",
	"sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core": "has sentences that server/schema/descriptions embeds compressed",
	"testing":                            "is for tests",
	"net/http/httptest":                  "is for tests",
	"k8s.io/client-go/kubernetes":        "has a client for every kind",
	"k8s.io/client-go/kubernetes/scheme": "has the types of every version that ever was",
	"k8s.io/apiserver/pkg/server":        "is another API server",
	"go.etcd.io/etcd/client/v3":          "is another client of etcd than sqlstore/foreign/etcd",
}

// TestLinkedPackages checks that some packages are not linked.
func TestLinkedPackages(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-tags=grpcnotrace", "-deps", "./cmd/rowlock")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, "github.com/json-iterator/go") {
		t.Error("json-iterator is not linked any more: its replacement may go")
	}
	for _, p := range linked {
		if why := unwanted[p]; why != "" {
			t.Errorf("%s %s", p, why)
		}
	}
}
