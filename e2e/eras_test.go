package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestServesEras serves databases of earlier builds: what they held is there, with its resource versions, and can be changed.
func TestServesEras(t *testing.T) {
	t.Parallel()
	for era, objects := range map[string]map[string]string{
		"first": {"/api/v1/namespaces/shop/configmaps/c1": "21", "/apis/apps/v1/namespaces/shop/deployments/web": "26", "/api/v1/namespaces/shop/services/web": "27"},
		"schema9": {"/api/v1/namespaces/shop/configmaps/c1": "209", "/apis/apps/v1/namespaces/shop/deployments/web": "214", "/api/v1/namespaces/shop/services/web": "215",
			"/apis/example.com/v1/namespaces/shop/widgets/w": "227"},
	} {
		t.Run(era, func(t *testing.T) {
			url := "sqlite:" + filepath.Join(t.TempDir(), "rowlock.db")
			if err := os.WriteFile(strings.TrimPrefix(url, "sqlite:"), storetest.EraFile(t, "testdata/eras/"+era+".db.gz"), 0o600); err != nil {
				t.Fatal(err)
			}
			s := harness.StartT(t, harness.Options{Store: url})
			a := newAPI(t, s)
			for path, revision := range objects {
				var o metav1.PartialObjectMetadata
				if err := json.Unmarshal(want(t, a, http.StatusOK, http.MethodGet, path, "", ""), &o); err != nil || o.ResourceVersion != revision {
					t.Errorf("%s has resource version %s, %v", path, o.ResourceVersion, err)
				}
			}
			want(t, a, http.StatusOK, http.MethodPatch, "/api/v1/namespaces/shop/configmaps/c1", "application/merge-patch+json", `{"data":{"k":"of today"}}`)
			wantClean(t, url)
		})
	}
}
