// Package audit records which user requested what, and the outcome.
//
// Only the levels Request and RequestResponse put bodies into an event; a backend in batch mode never makes a
// request wait, and counts the events that it drops; without a policy, auditing costs a request nothing.
package audit

import (
	"encoding/json"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const apiVersion = "audit.k8s.io/v1"

// Event is one line of the log, as in audit.k8s.io/v1. Its fields are in the order of their keys.
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
	AuthenticationMetadata   *AuthenticationMetadata    `json:"authenticationMetadata,omitempty"`
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

// AuthenticationMetadata describes the authentication of a request's user.
type AuthenticationMetadata struct {
	ImpersonationConstraint string `json:"impersonationConstraint,omitempty"`
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

// WithoutManagedFields drops metadata.managedFields from an object, from each item of a list, from the object
// of each table row, and from the past object in a revision. It returns other values unchanged. Fields of
// those names deeper in an object are its own: they stay, and are not read, so the cost is linear however
// deep a client nests them.
func WithoutManagedFields(data []byte) []byte {
	return without(data, func(obj map[string]json.RawMessage) bool {
		var version string
		_ = json.Unmarshal(obj["apiVersion"], &version)
		item := func(one json.RawMessage) json.RawMessage { return withoutOwn(one, version) }
		changed := stripOwn(obj, version)
		changed = stripEach(obj, "items", item) || changed
		if string(obj["kind"]) == `"Table"` && strings.HasPrefix(version, "meta.k8s.io/") {
			changed = stripEach(obj, "rows", func(row json.RawMessage) json.RawMessage { return stripIn(row, "object") }) || changed
		}
		return changed
	})
}

// withoutOwn drops the managed fields of one object. version is the API version of the list that contains it:
// an item may lack its own.
func withoutOwn(data []byte, version string) []byte {
	return without(data, func(obj map[string]json.RawMessage) bool { return stripOwn(obj, version) })
}

func stripOwn(obj map[string]json.RawMessage, version string) (changed bool) {
	_ = json.Unmarshal(obj["apiVersion"], &version)
	changed = strip(obj)
	if content, ok := obj["content"]; ok && version == past {
		obj["content"], changed = without(content, strip), true
	}
	return changed
}

// without returns an object after a change; other values are returned unchanged.
func without(data []byte, change func(map[string]json.RawMessage) bool) []byte {
	var obj map[string]json.RawMessage
	if json.Unmarshal(data, &obj) != nil || !change(obj) {
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

// stripEach replaces each element of a list by the result of shorter.
func stripEach(obj map[string]json.RawMessage, name string, shorter func(json.RawMessage) json.RawMessage) (changed bool) {
	var list []json.RawMessage
	if raw, ok := obj[name]; !ok || json.Unmarshal(raw, &list) != nil {
		return false
	}
	for i := range list {
		list[i] = shorter(list[i])
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
	return without(outer, func(fields map[string]json.RawMessage) bool {
		inner, ok := fields[name]
		if ok {
			fields[name] = withoutOwn(inner, "")
		}
		return ok
	})
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
