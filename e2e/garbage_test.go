package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestKubectlCascades deletes owners in each of the ways that kubectl knows, on a server whose
// collector waits for nothing.
func TestKubectlCascades(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{Args: []string{"--controllers=*,gc", "--concurrent-gc-syncs=5"}})
	k := s.Kubectl(t)
	for _, how := range []string{"background", "foreground", "orphan"} {
		k.Run("create", "configmap", how)
		uid := strings.TrimSpace(k.Run("get", "configmap", how, "-o", "jsonpath={.metadata.uid}"))
		refs := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q,"blockOwnerDeletion":true}]}}`, how, uid)
		k.Run("create", "secret", "generic", how)
		k.Run("patch", "secret", how, "--type=merge", "-p", refs)
		k.Run("delete", "configmap", how, "--cascade="+how)
		if how != "orphan" {
			k.Run("wait", "--for=delete", "secret/"+how, "--timeout=2m")
			continue
		}
		if owners := k.Run("get", "secret", how, "-o", "jsonpath={.metadata.ownerReferences}"); strings.TrimSpace(owners) != "" {
			t.Errorf("what stays refers to %s", owners)
		}
	}
}
