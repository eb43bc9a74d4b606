package request

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IncompletePathError is the error for a path that begins like that of a resource and is too short.
type IncompletePathError struct{ URL string }

func (e *IncompletePathError) Error() string {
	return fmt.Sprintf("unable to determine kind and namespace from url, %s", e.URL)
}

// Parse parses a request. The path is divided into segments after decoding, so that authorization and routing
// use the same segments: "//" contains an empty one, and ".." is a name. The only error is *IncompletePathError.
func Parse(method string, u *url.URL) (*Info, error) {
	info := &Info{Path: u.Path, Verb: strings.ToLower(method)}
	if u.RawQuery != "" {
		info.Query = u.Query()
	}
	parts := segments(u)
	if len(parts) < 3 {
		return info, nil
	}
	switch parts[0] {
	case "api":
		info.Version, parts = parts[1], parts[2:]
		info.Prefix = "api"
	case "apis":
		if len(parts) < 4 {
			return info, nil
		}
		info.Prefix = "apis"
		info.Group, info.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return info, nil
	}
	info.IsResource = true
	info.Verb = verbOf(method)

	if parts[0] == "watch" || parts[0] == "proxy" {
		if len(parts) < 2 {
			return nil, &IncompletePathError{URL: u.String()}
		}
		info.Verb = parts[0]
		info.WatchPrefix = parts[0] == "watch"
		parts = parts[1:]
	}
	info.place(parts)
	info.collection()
	return info, nil
}

// place reads the namespace, resource, name and subresource.
func (info *Info) place(parts []string) {
	info.Parts = parts
	if parts[0] == "namespaces" && len(parts) > 1 {
		info.Namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
			info.Parts = parts
		}
	}
	info.Resource = parts[0]
	if len(parts) > 1 {
		info.Name = parts[1]
	}
	if len(parts) > 2 && info.Verb != "proxy" {
		info.Subresource = parts[2]
	}
}

// collection determines the verb of a get or delete that may apply to a collection, and of a get that may be
// a watch.
func (info *Info) collection() {
	switch info.Verb {
	case "delete":
		if info.Name == "" {
			info.Verb = "deletecollection"
		}
	case "get":
		if info.Name == "" {
			info.Verb = "list"
		}
		if info.Subresource == "" && flag(info.Query, "watch") {
			info.Verb = "watch"
		}
	}
	switch info.Verb {
	case "list", "watch", "deletecollection":
	default:
		return
	}
	if info.Query == nil {
		return
	}
	info.FieldSelector = info.Query.Get("fieldSelector")
	info.LabelSelector = info.Query.Get("labelSelector")
	if info.Name != "" || info.WatchPrefix || info.Verb == "deletecollection" || !strings.Contains(info.FieldSelector, metav1.ObjectNameField+"=") {
		return
	}
	sel, err := info.Fields()
	if err != nil {
		return
	}
	name, ok := sel.RequiresExactMatch(metav1.ObjectNameField)
	if ok && name != "" && len(path.IsValidPathSegmentName(name)) == 0 {
		info.Name, info.NameFromSelector = name, true
	}
}

// segments splits the decoded path like a stock server: an encoded slash is a slash, and trailing slashes are
// ignored.
func segments(u *url.URL) []string {
	p := u.Path
	if len(p) < 2 || p[0] != '/' || p[1] == '/' {
		return nil
	}
	return strings.SplitN(strings.TrimRight(p[1:], "/"), "/", maxSegments)
}

// maxSegments is the number of segments of a path, of which the last may contain slashes: what follows the subresource in the longest
// form, /apis/GROUP/VERSION/watch/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE. A path of a million segments would take sixteen times
// as much memory.
const maxSegments = 10

func verbOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return ""
}

// flag reads a boolean parameter like a stock server: without a value it is true, as is every text but
// "false" and "0".
func flag(q url.Values, name string) bool {
	v, ok := q[name]
	if !ok || len(v) == 0 {
		return false
	}
	return v[0] != "0" && !strings.EqualFold(v[0], "false")
}
