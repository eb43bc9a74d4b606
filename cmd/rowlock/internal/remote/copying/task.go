package copying

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
)

// reference is an owner reference.
type reference struct{ APIVersion, Kind, Name, UID string }

// task is an object that is being copied.
type task struct {
	Resource  string // "deployments.apps"
	group     string
	plural    string
	version   string
	namespace string
	name      string
	uid       string // in the source
	owners    []reference
	object    map[string]any
	state     state
	weight    int64 // bytes that it was read from
}

// state is the next step of a task.
type state int

const (
	ends  state = iota // it is not copied, or was
	waits              // for its owners
	goes               // to a worker
)

// newTask decodes an object. If the object cannot be copied, it returns the reason and a task for the report. It reads
// the identity from the object that will be written.
func newTask(resource string, data []byte) (*task, error) {
	t := &task{Resource: resource, name: "?"}
	t.group, t.plural = split(resource)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // numbers stay as they are written
	if err := dec.Decode(&t.object); err != nil || t.object == nil {
		return t, errors.New("the object is not a JSON object")
	}
	version, _ := t.object["apiVersion"].(string)
	name, _ := t.field("metadata", "name").(string)
	namespace, _ := t.field("metadata", "namespace").(string)
	if err := remote.CheckNames(namespace, name); err != nil {
		return t, err
	}
	t.name, t.namespace = name, namespace
	t.uid, _ = t.field("metadata", "uid").(string)
	t.version = version[strings.LastIndexByte(version, '/')+1:]
	list, _ := t.field("metadata", "ownerReferences").([]any)
	for _, entry := range list {
		t.owners = append(t.owners, referenceOf(entry))
	}
	return t, nil
}

func referenceOf(entry any) (r reference) {
	m, _ := entry.(map[string]any)
	r.APIVersion, _ = m["apiVersion"].(string)
	r.Kind, _ = m["kind"].(string)
	r.Name, _ = m["name"].(string)
	r.UID, _ = m["uid"].(string)
	return r
}

// path returns the path of the object in the target.
func (t *task) path(r remote.Resource) string { return r.Path(t.namespace, t.name) }

func (t *task) field(path ...string) any {
	var v any = t.object
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

func (t *task) label(name string) string {
	s, _ := t.field("metadata", "labels", name).(string)
	return s
}

// Picks reports whether objects of a resource may be copied.
func (o *Options) Picks(resource string) bool {
	return (len(o.Resources) == 0 || matches(o.Resources, resource)) && !matches(o.Exclude, resource)
}

// wanted reports whether to copy an object. It reports selected objects that cannot be copied.
func (c *copier) wanted(t *task) bool {
	o := &c.o
	switch {
	case !o.Picks(t.Resource):
		return false
	case len(o.Namespaces) > 0 && !slices.Contains(o.Namespaces, t.namespace) && (t.Resource != "namespaces" || !slices.Contains(o.Namespaces, t.name)):
		return false
	case o.Selector != nil && !o.Selector.Matches(t.labels()):
		return false
	}
	if reason := c.skip(t); reason != "" {
		c.report.add(t, Skipped, reason)
		return false
	}
	return true
}

func (t *task) labels() labels.Set {
	set := labels.Set{}
	m, _ := t.field("metadata", "labels").(map[string]any)
	for k, v := range m {
		set[k], _ = v.(string)
	}
	return set
}

// derived are resources that the target derives from other objects or from requests.
var derived = map[string]string{
	"ipaddresses.networking.k8s.io":                  "the target notes its own addresses",
	"certificatesigningrequests.certificates.k8s.io": "it is bound to who asked for it",
	"componentstatuses":                              "the server makes it up",
}

// own are objects that each server makes for itself.
var own = map[string]bool{
	"services default/kubernetes": true, "endpoints default/kubernetes": true, "endpointslices.discovery.k8s.io default/kubernetes": true,
	"servicecidrs.networking.k8s.io /kubernetes":                 true,
	"configmaps kube-system/extension-apiserver-authentication":  true,
	"priorityclasses.scheduling.k8s.io /system-cluster-critical": true, "priorityclasses.scheduling.k8s.io /system-node-critical": true,
}

// skip returns the reason to skip an object; "" to copy it.
func (c *copier) skip(t *task) string {
	kept := "the target keeps its own"
	switch {
	case derived[t.Resource] != "":
		return derived[t.Resource]
	case own[t.Resource+" "+t.namespace+"/"+t.name],
		t.Resource == "configmaps" && t.name == "kube-root-ca.crt",
		t.Resource == "leases.coordination.k8s.io" && t.label("apiserver.kubernetes.io/identity") != "",
		t.Resource == "apiservices.apiregistration.k8s.io" && t.field("spec", "service") == nil,
		t.label("kubernetes.io/bootstrapping") != "",
		t.field("metadata", "annotations", "apf.kubernetes.io/autoupdate-spec") == "true":
		return kept
	case t.Resource == "secrets" && t.field("type") == "kubernetes.io/service-account-token":
		return "a token of a service account is good for its own cluster alone"
	case (t.Resource == "events" || t.Resource == "events.events.k8s.io") && !c.o.Events:
		return "events tell of the past of the other cluster (--events copies them)"
	case t.field("metadata", "deletionTimestamp") != nil:
		return "it is being deleted"
	}
	return ""
}
