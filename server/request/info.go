// Package request parses the method and the URL of requests, and holds the Scope of a request: the state that its
// filters and its verb share, such as the user, the permit and the audit event.
//
// Parse looks nothing up, and splits a path only after decoding it, so that authorization and routing see the same
// segments. A Scope belongs to the goroutine of its request; if the answer outlives the handler, the work at its end
// runs exactly once (detach.go).
package request

import (
	"net/url"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Info is the parsed request. Parsing looks nothing up.
type Info struct {
	IsResource  bool
	Path        string // as decoded by net/url; rules for paths match it
	Verb        string // get list watch create update patch delete deletecollection proxy; for paths the lower-case method; "" for a method without a verb
	Prefix      string // "api" or "apis"
	Group       string
	Version     string
	Namespace   string
	Resource    string
	Subresource string
	Name        string
	Parts       []string // resource and the parts after it; the last one of a long path may contain slashes

	// WatchPrefix: the path is of the old form /api/v1/watch/...
	WatchPrefix bool
	// NameFromSelector: a list or watch with fieldSelector=metadata.name=x; Name
	// holds x for authorization, but the path names a collection.
	NameFromSelector bool

	FieldSelector string // as sent, unparsed
	LabelSelector string

	Query url.Values // nil without a query

	// Remote: another server serves the group version. Upgrade: and the client wants to
	// switch this connection to another protocol. Local: no other server serves it. The server sets
	// them, not Parse; while it starts, it sets none.
	Remote, Upgrade, Local bool

	fields parsed[fields.Selector]
	labels parsed[labels.Selector]
}

// parsed is a selector that several filters use: parsing one costs more than using it.
type parsed[T any] struct {
	done     bool
	selector T
	err      error
}

// Fields returns FieldSelector, parsed once. It is for the goroutine of the request.
func (i *Info) Fields() (fields.Selector, error) {
	p := &i.fields
	if !p.done {
		p.done = true
		p.selector, p.err = fields.ParseSelector(i.FieldSelector)
	}
	return p.selector, p.err
}

// Labels returns LabelSelector, parsed once. It is for the goroutine of the request.
func (i *Info) Labels() (labels.Selector, error) {
	p := &i.labels
	switch {
	case p.done:
	case i.LabelSelector == "":
		p.selector = labels.NewSelector()
	default:
		p.selector, p.err = labels.Parse(i.LabelSelector)
	}
	p.done = true
	return p.selector, p.err
}

// Fresh returns a copy for another goroutine, without Query and parsed selectors.
func (i *Info) Fresh() *Info {
	return &Info{
		IsResource: i.IsResource, Path: i.Path, Verb: i.Verb, Prefix: i.Prefix, Group: i.Group, Version: i.Version, Namespace: i.Namespace,
		Resource: i.Resource, Subresource: i.Subresource, Name: i.Name, Parts: i.Parts, WatchPrefix: i.WatchPrefix, NameFromSelector: i.NameFromSelector,
		FieldSelector: i.FieldSelector, LabelSelector: i.LabelSelector, Remote: i.Remote, Upgrade: i.Upgrade,
	}
}

// Release drops the parsed label selector after its user has made something smaller of it. Labels would parse
// it again.
func (i *Info) Release() { i.labels = parsed[labels.Selector]{} }
