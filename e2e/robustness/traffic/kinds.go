//go:build unix

package traffic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// kind is a kind of object that the traffic writes.
type kind struct {
	resource   string // as in the table
	plural     string
	apiVersion string
	name       string
	prefix     string // of its URLs
	object     func(field, id string) map[string]any
}

var (
	configMaps = kind{"configmaps", "configmaps", "v1", "ConfigMap", "/api/v1", func(field, id string) map[string]any {
		return map[string]any{"data": map[string]any{field: id}}
	}}
	leases = kind{"leases.coordination.k8s.io", "leases", "coordination.k8s.io/v1", "Lease", "/apis/coordination.k8s.io/v1", func(_, id string) map[string]any {
		return map[string]any{"spec": map[string]any{"holderIdentity": id, "leaseDurationSeconds": 15}}
	}}
	widgets = kind{"widgets.robust.rowlock.dev", "widgets", "robust.rowlock.dev/v1", "Widget", "/apis/robust.rowlock.dev/v1", func(field, id string) map[string]any {
		// The status in a write of the spec must have no effect, and vice versa.
		stolen := map[string]any{"values": map[string]any{"stolen": id}}
		if name, ok := strings.CutPrefix(field, "status."); ok {
			return map[string]any{"spec": stolen, "status": map[string]any{"values": map[string]any{name: id}}}
		}
		return map[string]any{"spec": map[string]any{"values": map[string]any{field: id}}, "status": stolen}
	}}
	deployments = kind{"deployments.apps", "deployments", "apps/v1", "Deployment", "/apis/apps/v1", func(field, id string) map[string]any {
		return map[string]any{"spec": map[string]any{"paused": true}, "status": map[string]any{"conditions": []any{map[string]any{"type": strings.TrimPrefix(field, "status."), "status": "True", "message": id}}}}
	}}
	pods = kind{"pods", "pods", "v1", "Pod", "/api/v1", func(field, id string) map[string]any {
		// Only a binding sets the node.
		phase := phases[id[len(id)-1]%2]
		return map[string]any{"spec": map[string]any{"nodeName": "stolen"}, "status": map[string]any{"phase": phase, "conditions": []any{map[string]any{"type": strings.TrimPrefix(field, "status."), "status": "True", "message": id}}}}
	}}
	// widgetVersions are the versions in which custom resources are served. They are stored in the first.
	widgetVersions = []kind{widgets, inVersion(widgets, "v2")}
	kinds          = []kind{configMaps, leases, widgets, deployments, pods}
	allKinds       = append(slices.Clone(kinds), shifts, csiNodes)
)

// phases are those of Pods, of which each write of a status sets one.
var phases = []string{"Pending", "Running"}

// Namespaces are the namespaces of the traffic.
var Namespaces = []string{"red", "blue"}

// Ours reports whether the traffic writes an object.
func Ours(k history.Key) bool {
	return slices.Contains(scopes, k.Scope())
}

// Scopes returns all that the traffic writes to.
func Scopes() []history.Scope { return scopes }

var scopes = func() (all []history.Scope) {
	for _, kind := range kinds {
		for _, ns := range Namespaces {
			all = append(all, history.Scope{Resource: kind.resource, Namespace: ns})
		}
	}
	for _, kind := range nearKinds {
		all = append(all, history.Scope{Resource: kind.resource, Namespace: nearNamespace})
	}
	return append(all, fleetScope, crowdScope, csiScope, largeScope, shiftScope)
}()

// inVersion is a kind in another version of its group.
func inVersion(k kind, version string) kind {
	group, _, _ := strings.Cut(k.apiVersion, "/")
	k.apiVersion = group + "/" + version
	k.prefix = "/apis/" + k.apiVersion
	return k
}

// servedAs returns the kind of a resource in a version; "": the usual one.
func servedAs(resource, apiVersion string) kind {
	for _, k := range slices.Concat(widgetVersions, shiftVersions) {
		if k.resource == resource && k.apiVersion == apiVersion {
			return k
		}
	}
	return kindOf(resource)
}

func kindOf(resource string) kind {
	for _, k := range allKinds {
		if k.resource == resource {
			return k
		}
	}
	panic("traffic: no kind has the resource " + resource)
}

// custom reports whether the kind is that of custom resources.
func (k kind) custom() bool { return strings.HasPrefix(k.apiVersion, history.CustomGroup+"/") }

func (k kind) path(ns, name string) string {
	p := k.prefix + "/namespaces/" + ns + "/" + k.plural
	if ns == "" {
		p = k.prefix + "/" + k.plural
	}
	if name != "" {
		p += "/" + name
	}
	return p
}

// body returns an object, or a patch, that sets a field to the ID of an operation.
func (k kind) body(name string, version uint64, field, id string, on *bool, pad int) string {
	o := k.object(field, id)
	metadata := map[string]any{}
	o["metadata"] = metadata
	if name != "" {
		o["apiVersion"], o["kind"], metadata["name"] = k.apiVersion, k.name, name
	}
	if version != 0 {
		metadata["resourceVersion"] = fmt.Sprint(version)
	}
	if on != nil {
		no := any("no")
		if name == "" { // a patch takes the label away
			no = nil
		}
		side := map[bool]any{true: "yes", false: no}[*on]
		metadata["labels"] = map[string]any{"on": side}
		if spec, ok := o["spec"].(map[string]any); ok && k.resource == widgets.resource {
			spec["side"] = side
		}
	}
	if data, ok := o["data"].(map[string]any); ok && pad > 0 {
		data["pad"] = strings.Repeat("x", pad)
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // maps of texts
	}
	return string(text)
}

// applied returns an object with some fields.
func (k kind) applied(name, field, id string, fields map[string]any) string {
	o := k.object(field, id)
	o["apiVersion"], o["kind"], o["metadata"] = k.apiVersion, k.name, map[string]any{"name": name}
	if _, ok := o["data"]; ok {
		o["data"] = fields
	} else {
		o["spec"] = map[string]any{"values": fields}
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // maps of texts
	}
	return string(text)
}

// definition is the definition of widgets, in two versions with the same schema.
var definition = fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.robust.rowlock.dev"},
"spec":{"group":"robust.rowlock.dev","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},
"versions":[{"name":"v1","served":true,"storage":true,%[1]s},{"name":"v2","served":true,"storage":false,%[1]s}]}}`, widgetVersion)

const widgetVersion = `"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},"selectableFields":[{"jsonPath":".spec.side"}],
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"side":{"type":"string"},"replicas":{"type":"integer"},"log":{"type":"array","items":{"type":"string"}},"values":{"type":"object","additionalProperties":{"type":"string"}}}},
"status":{"type":"object","properties":{"replicas":{"type":"integer"},"values":{"type":"object","additionalProperties":{"type":"string"}}}}}}}`

// deploymentBody returns a Deployment with a status, which a create must not store; likewise the spec in a patch of the status.
func deploymentBody(name, id string, on bool) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"labels":{"on":%q}},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}},"status":{"conditions":[{"type":"created","status":"True","message":"by nobody"}]}}`,
		name, map[bool]string{true: "yes", false: "no"}[on])
}

func podBody(name, id, account string, on bool) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"on":%q},"annotations":{"robust.rowlock.dev/v":%q}},"spec":{"serviceAccountName":%q,"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`,
		name, map[bool]string{true: "yes", false: "no"}[on], id, account)
}
