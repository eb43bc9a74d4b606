package history

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Name is the parsed name of a revision: "deployments.apps:web:1234", or
// "deployments.apps:web:at-2026-11-23T14:05:00Z". It is cut at its first and last colon, or before the last
// "at-" that a time follows: names of objects may contain colons.
type Name struct {
	Resource schema.GroupResource
	Name     string
	State
}

// State selects a state of an object: by revision, or if that is 0 by time.
type State struct {
	Revision int64
	Time     time.Time
}

// at begins a State that is a time.
const at = "at-"

// ErrName is wrapped by every error about a name.
var ErrName = errors.New(`a revision is named RESOURCE[.GROUP]:NAME:REVISION, or with at- and a time in place of the revision (deployments.apps:web:1234, deployments.apps:web:at-2026-01-31T14:05:00Z)`)

// String returns the name of a revision.
func (n Name) String() string {
	return n.Resource.String() + ":" + n.Name + ":" + n.State.String()
}

// String returns the last part of a revision's name.
func (s State) String() string {
	if s.Revision == 0 {
		return at + s.Time.UTC().Format(time.RFC3339Nano)
	}
	return strconv.FormatInt(s.Revision, 10)
}

// ParseName reads the name of a revision. The errors wrap ErrName.
func ParseName(text string) (n Name, err error) {
	resource, rest, ok := strings.Cut(text, ":")
	if !ok {
		return n, ErrName
	}
	if n.Resource, err = ParseResource(resource); err != nil {
		return n, fmt.Errorf("%w: %w", ErrName, err)
	}
	state := ""
	if i := strings.LastIndex(rest, ":"+at); i >= 0 {
		if _, err := time.Parse(time.RFC3339, rest[i+1+len(at):]); err == nil {
			n.Name, state = rest[:i], rest[i+1:]
		}
	}
	if state == "" {
		i := strings.LastIndexByte(rest, ':')
		if i < 0 {
			return n, ErrName
		}
		n.Name, state = rest[:i], rest[i+1:]
	}
	if err := CheckObject(n.Name); err != nil {
		return n, fmt.Errorf("%w: %w", ErrName, err)
	}
	n.State, err = ParseState(state)
	return n, err
}

// ParseState reads a revision, or "at-" and a time in RFC 3339. The errors wrap ErrName.
func ParseState(text string) (s State, err error) {
	if moment, ok := strings.CutPrefix(text, at); ok {
		if s.Time, err = time.Parse(time.RFC3339, moment); err != nil {
			return s, fmt.Errorf("%w: %q is not a time in RFC 3339, such as 2026-01-31T14:05:00Z", ErrName, moment)
		}
		return s, nil
	}
	s.Revision, err = strconv.ParseInt(text, 10, 64)
	if err != nil || s.Revision <= 0 || text[0] == '+' || text[0] == '0' {
		return State{}, fmt.Errorf("%w: %q is not a revision: want a whole number above 0", ErrName, text)
	}
	return s, nil
}

// ParseResource parses "pods" or "deployments.apps". It fails for text that cannot be the name of a resource,
// such as a wildcard or a subresource.
func ParseResource(text string) (schema.GroupResource, error) {
	gr := schema.ParseGroupResource(text)
	if len(validation.IsDNS1035Label(gr.Resource)) > 0 || gr.Group == "" && strings.Contains(text, ".") ||
		gr.Group != "" && len(validation.IsDNS1123Subdomain(gr.Group)) > 0 {
		return schema.GroupResource{}, fmt.Errorf("%q is not the name of a resource, such as pods or deployments.apps", text)
	}
	return gr, nil
}

// CheckObject returns the reason why a text cannot be the name of an object.
func CheckObject(name string) error {
	if name == "" {
		return errors.New("there is no name of an object")
	}
	if faults := path.IsValidPathSegmentName(name); len(faults) > 0 {
		return fmt.Errorf("%q is no name of an object: %s", name, strings.Join(faults, "; "))
	}
	return nil
}
