// Package audit writes down who asked for what, and what became of it.
//
// It promises: bodies are in an event at the levels Request and RequestResponse
// alone; a backend in batch mode never makes a request wait, and what it drops is
// counted; where no policy is set, a request pays nothing.
package audit

import (
	"encoding/json"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const apiVersion = "audit.k8s.io/v1"

// Event is one line of the log, as in audit.k8s.io/v1. The order of its fields is
// that of its keys.
type Event struct {
	Kind                     string                     `json:"kind,omitempty"`
	APIVersion               string                     `json:"apiVersion,omitempty"`
	Level                    Level                      `json:"level"`
	AuditID                  string                     `json:"auditID"`
	Stage                    Stage                      `json:"stage"`
	RequestURI               string                     `json:"requestURI"`
	Verb                     string                     `json:"verb"`
	User                     authenticationv1.UserInfo  `json:"user"`
	ImpersonatedUser         *authenticationv1.UserInfo `json:"impersonatedUser,omitempty"`
	SourceIPs                []string                   `json:"sourceIPs,omitempty"`
	UserAgent                string                     `json:"userAgent,omitempty"`
	ObjectRef                *ObjectReference           `json:"objectRef,omitempty"`
	ResponseStatus           *metav1.Status             `json:"responseStatus,omitempty"`
	RequestObject            json.RawMessage            `json:"requestObject,omitempty"`
	ResponseObject           json.RawMessage            `json:"responseObject,omitempty"`
	RequestReceivedTimestamp metav1.MicroTime           `json:"requestReceivedTimestamp"`
	StageTimestamp           metav1.MicroTime           `json:"stageTimestamp"`
	Annotations              map[string]string          `json:"annotations,omitempty"`
}

// ObjectReference names the object of a request.
type ObjectReference struct {
	Resource        string `json:"resource,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"`
	APIGroup        string `json:"apiGroup,omitempty"`
	APIVersion      string `json:"apiVersion,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Subresource     string `json:"subresource,omitempty"`
}

func micro(t time.Time) metav1.MicroTime { return metav1.NewMicroTime(t.UTC()) }

// WithoutManagedFields drops metadata.managedFields from an object, from each item of a list, from
// the object of each row of a table, and from an object of the past that stands in a revision. What
// is no object comes back as it is.
func WithoutManagedFields(data []byte) []byte { return withoutManagedFields(data, "") }

// withoutManagedFields is for an item of a list of an API version, too, which need not say its own.
func withoutManagedFields(data []byte, version string) []byte {
	var obj map[string]json.RawMessage
	if json.Unmarshal(data, &obj) != nil {
		return data
	}
	_ = json.Unmarshal(obj["apiVersion"], &version) // an item without one is of that of its list
	changed := strip(obj)
	if content, ok := obj["content"]; ok && version == past {
		obj["content"], changed = withoutManagedFields(content, ""), true
	}
	changed = stripEach(obj, "items", func(item json.RawMessage) json.RawMessage { return withoutManagedFields(item, version) }) || changed
	if string(obj["kind"]) == `"Table"` && strings.HasPrefix(version, "meta.k8s.io/") {
		changed = stripEach(obj, "rows", func(row json.RawMessage) json.RawMessage { return stripIn(row, "object") }) || changed
	}
	if !changed {
		return data
	}
	out, err := json.Marshal(obj)
	if err != nil {
		return data
	}
	return out
}

// past is the API version of revisions, which hold whole objects.
const past = "history.rowlock.dev/v1"

// stripEach puts what without makes of each element of a list in its place.
func stripEach(obj map[string]json.RawMessage, name string, without func(json.RawMessage) json.RawMessage) (changed bool) {
	var list []json.RawMessage
	if raw, ok := obj[name]; !ok || json.Unmarshal(raw, &list) != nil {
		return false
	}
	for i := range list {
		list[i] = without(list[i])
	}
	out, err := json.Marshal(list)
	if err != nil {
		return false
	}
	obj[name] = out
	return true
}

// stripIn is outer, in which the object of a name has no managed fields.
func stripIn(outer json.RawMessage, name string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(outer, &fields) != nil || fields[name] == nil {
		return outer
	}
	fields[name] = withoutManagedFields(fields[name], "")
	out, err := json.Marshal(fields)
	if err != nil {
		return outer
	}
	return out
}

func strip(obj map[string]json.RawMessage) bool {
	var meta map[string]json.RawMessage
	if json.Unmarshal(obj["metadata"], &meta) != nil {
		return false
	}
	if _, ok := meta["managedFields"]; !ok {
		return false
	}
	delete(meta, "managedFields")
	out, err := json.Marshal(meta)
	if err != nil {
		return false
	}
	obj["metadata"] = out
	return true
}
