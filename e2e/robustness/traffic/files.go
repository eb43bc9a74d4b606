//go:build unix

package traffic

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Names of files in the folder of a server.
const (
	auditPolicyFile = "audit-policy.json"
	encryptionFile  = "encryption.json"
)

// The levels of the audit policy.
const (
	metadataLevel = "Metadata"
	bodiesLevel   = "RequestResponse"
)

// auditPolicy records Secrets without their content, and the writes of administrators, some Leases and custom resources with all bodies. It
// leaves out the fleet, whose writes are too many, and the first stage of writes of Pods.
var auditPolicy = fmt.Sprintf(`{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"None","namespaces":[%q]},
{"level":%q,"resources":[{"group":"","resources":["secrets","serviceaccounts/token"]}]},
{"level":%q,"userGroups":["system:masters"],"verbs":["create","update","patch","delete"],"namespaces":[%q],"resources":[{"group":"coordination.k8s.io","resources":["leases"]},{"group":%q,"resources":["widgets"]}]},
{"level":%[2]q,"omitStages":["RequestReceived"],"userGroups":["system:masters"],"verbs":["create","update","patch","delete","deletecollection"],"resources":[{"group":"","resources":["pods","pods/*"]}]},
{"level":%[2]q,"userGroups":["system:masters"],"verbs":["create","update","patch","delete","deletecollection"]},{"level":"None"}]}`,
	fleetNamespace, metadataLevel, bodiesLevel, bodiesNamespace, history.CustomGroup)

// bodiesNamespace is the namespace of the objects whose writes the servers record with all bodies.
const bodiesNamespace = "blue"

// audited returns the level at which the servers must record an operation; "" if they need not.
func (c *client) audited(op *history.Op) string {
	switch {
	case op.Reads() || c.token != harness.AdminToken || c.as != "" || op.Key.Namespace == fleetNamespace:
		return ""
	case op.Key.Namespace == bodiesNamespace && (op.Key.Resource == leases.resource || op.Key.Resource == widgets.resource) && op.Kind != history.Status && op.Kind != history.Scale && op.Kind != history.DeleteCollection:
		return bodiesLevel
	}
	return metadataLevel
}

// auditID is the context key of the audit ID of a request.
type auditID struct{}

func withAuditID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, auditID{}, id)
}

// ServerFiles writes the audit policy, the encryption configuration and the authorities of a server, and returns the flags for them.
func ServerFiles(folder string) (args []string, err error) {
	policy, encryption := filepath.Join(folder, auditPolicyFile), filepath.Join(folder, encryptionFile)
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	if err := (keyring{firstKey}).write(encryption, false); err != nil {
		return nil, err
	}
	if err := writeAuthorities(folder); err != nil {
		return nil, err
	}
	// The limit is so large that the server does not rotate the log in a run.
	return []string{"--audit-policy-file", policy, "--audit-log-path", filepath.Join(folder, cluster.AuditLog), "--audit-log-maxsize", "8192",
		"--encryption-provider-config", encryption, "--encryption-provider-config-automatic-reload", "--client-ca-file", filepath.Join(folder, authoritiesFile)}, nil
}
