// Package request turns a method and a URL into what the request means.
package request

// Info is what a request asks for. It is pure: nothing is looked up.
type Info struct {
	IsResource  bool
	Path        string
	Verb        string // get list watch create update patch delete deletecollection proxy; else the lower-case method
	Prefix      string // "api" or "apis"
	Group       string
	Version     string
	Namespace   string
	Resource    string
	Subresource string
	Name        string
	Parts       []string // resource and what follows it

	// NameFromSelector: list or watch with fieldSelector=metadata.name=x; Name holds x.
	FieldSelector string
	LabelSelector string
}
