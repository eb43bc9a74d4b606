package codecs

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Form is a negotiated form of an answer.
type Form struct {
	Type   string                  // JSON, YAML, Protobuf or CBOR
	As     schema.GroupVersionKind // the requested transform; zero for the object itself
	Pretty bool                    // indented; JSON only
}

// IsTable, IsPartial and IsPartialList tell the transforms of resources.
func (f Form) IsTable() bool       { return f.As.Kind == "Table" }
func (f Form) IsPartial() bool     { return f.As.Kind == "PartialObjectMetadata" }
func (f Form) IsPartialList() bool { return f.As.Kind == "PartialObjectMetadataList" }

// StreamType returns the Content-Type of a watch in this form.
func (f Form) StreamType() string {
	if f.Type == JSON {
		return JSON
	}
	return f.streamName()
}

// Offer are the forms of an endpoint's answers.
type Offer struct {
	// Types are the media types in order of preference; the 406 answer names them.
	Types []string
	// Plain, if set, are those of Types that can carry the object itself, and not only a transform of it:
	// custom resources have no Protobuf.
	Plain []string
	// Transforms decides which transforms a media type can carry; nil allows none.
	Transforms func(mediaType string, as schema.GroupVersionKind) bool
}

// ResourceTransforms allows the transforms of every stored resource: Table and PartialObjectMetadata, of v1
// and v1beta1.
func ResourceTransforms(mediaType string, as schema.GroupVersionKind) bool {
	if as.Kind == "Table" {
		return metaVersion(as) && (mediaType == JSON || mediaType == YAML)
	}
	return PartialTransforms(mediaType, as)
}

// PartialTransforms allows PartialObjectMetadata alone: streaming lists.
func PartialTransforms(_ string, as schema.GroupVersionKind) bool {
	return metaVersion(as) && (as.Kind == "PartialObjectMetadata" || as.Kind == "PartialObjectMetadataList")
}

func metaVersion(gvk schema.GroupVersionKind) bool {
	return gvk.Group == metav1.GroupName && (gvk.Version == "v1" || gvk.Version == "v1beta1")
}

// Negotiate selects the form by an Accept header among the offered ones, or returns a 406.
func Negotiate(r *http.Request, offer Offer) (Form, error) {
	form, ok := negotiate(r.Header.Get("Accept"), offer)
	if !ok {
		return Form{}, notAcceptable(offer.Types)
	}
	form.Pretty = (form.Pretty || wantsPretty(r)) && form.Type == JSON
	return form, nil
}

// NegotiateWatch is Negotiate for a watch, which cannot be YAML.
func NegotiateWatch(r *http.Request, offer Offer) (Form, error) {
	form, err := Negotiate(r, offer)
	if err != nil {
		return form, err
	}
	form.Pretty = false
	if form.Type == YAML {
		var stream []string
		for _, t := range offer.Types {
			if t != YAML {
				stream = append(stream, Form{Type: t}.streamName())
			}
		}
		return Form{}, notAcceptable(stream)
	}
	return form, nil
}

func (f Form) streamName() string {
	if f.Type == CBOR {
		return CBORSeq
	}
	return f.Type + ";stream=watch"
}

// NegotiateError finds the form of an error. It never fails: the fallback is indented JSON. Transforms do not
// apply to errors.
func NegotiateError(r *http.Request, types []string) Form {
	form, err := Negotiate(r, Offer{Types: types})
	if err != nil {
		return Form{Type: JSON, Pretty: true}
	}
	return form
}

func negotiate(header string, offer Offer) (Form, bool) {
	if header == "" {
		return Form{Type: offer.Types[0]}, offer.allows(offer.Types[0], schema.GroupVersionKind{}, false)
	}
	for _, c := range parseAccept(header) {
		for _, t := range offer.Types {
			main, sub, _ := strings.Cut(t, "/")
			switch {
			case c.main == main && (c.sub == sub || c.sub == "*"), c.main == "*" && c.sub == "*":
				if form, ok := c.form(t, offer); ok {
					return form, true
				}
			}
		}
	}
	return Form{}, false
}

// Accepted returns the first of some media types that the client prefers by its Accept header; "" if it accepts none.
func Accepted(r *http.Request, offers ...string) string {
	accept := r.Header.Get("Accept")
	if accept == "" {
		return offers[0]
	}
	for _, c := range parseAccept(accept) {
		for _, offer := range offers {
			main, sub, _ := strings.Cut(offer, "/")
			if (c.main == main || c.main == "*") && (c.sub == sub || c.sub == "*") {
				return offer
			}
		}
	}
	return ""
}

// form applies the parameters of a clause to a type, if they allow it.
func (c *clause) form(mediaType string, offer Offer) (Form, bool) {
	form := Form{Type: mediaType}
	transform := false
	for _, p := range c.params {
		switch p.name {
		case "as":
			form.As.Kind, transform = p.value, true
		case "g":
			form.As.Group, transform = p.value, true
		case "v":
			form.As.Version, transform = p.value, true
		case "stream":
			if p.value != "" && (p.value != "watch" || mediaType == YAML) {
				return Form{}, false
			}
		case "sv":
			if p.value != "" && p.value != "v1" {
				return Form{}, false
			}
		case "pretty":
			form.Pretty = p.value == "1"
		}
	}
	return form, offer.allows(mediaType, form.As, transform)
}

func (o Offer) allows(mediaType string, as schema.GroupVersionKind, transform bool) bool {
	if transform {
		return o.Transforms != nil && o.Transforms(mediaType, as)
	}
	return o.Plain == nil || slices.Contains(o.Plain, mediaType)
}

// wantsPretty evaluates the pretty parameter, and without one the user agent: people read the output of curl,
// wget and browsers.
func wantsPretty(r *http.Request) bool {
	if strings.Contains(r.URL.RawQuery, "pretty") {
		query, _ := url.ParseQuery(r.URL.RawQuery)
		if value := query.Get("pretty"); value != "" {
			pretty, _ := strconv.ParseBool(value)
			return pretty
		}
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

// Acceptable is the check that routes of built-in resources make first: it compares only the names of the
// types. produces are the types that the route announces.
func Acceptable(r *http.Request, produces []string) error {
	accept := r.Header.Get("Accept")
	if accept == "" || matchesAny(accept, produces, true) {
		return nil
	}
	list := "\n\nAvailable representations: " + strings.Join(produces, ", ")
	if r.Header.Get("Content-Length") == "" && (r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch) {
		return routeError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "415: Unsupported Media Type"+list)
	}
	return routeError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "406: Not Acceptable"+list)
}

// matchesAny reports whether a header names one of the types. It ignores parameters.
func matchesAny(header string, types []string, wildcard bool) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, _, _ := strings.Cut(part, ";")
		name = strings.Trim(name, " ")
		if wildcard && name == "*/*" || slices.Contains(types, name) {
			return true
		}
	}
	return false
}

func notAcceptable(types []string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + strings.Join(types, ", "),
	}}
}

// NotAcceptableTransform refuses a transform that does not fit the object or list that was found, whose type has goType as
// its name in Go.
func NotAcceptableTransform(as schema.GroupVersionKind, isList bool, goType string) error {
	verb := "is not a list"
	if isList {
		verb = "is a list"
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: fmt.Sprintf("you requested %s, but the requested object %s (%s)", as.Kind, verb, goType),
	}}
}

// GoType names the type of a kind as a stock server prints it.
func GoType(gvk schema.GroupVersionKind, custom, list bool) string {
	suffix := ""
	if list {
		suffix = "List"
	}
	if custom {
		return "*unstructured.Unstructured" + suffix
	}
	return "*" + internalPackage(gvk.Group) + "." + gvk.Kind + suffix
}

func routeError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{},
	}}
}

// internalPackage returns the name by which a stock server's messages call a group.
func internalPackage(group string) string {
	switch group {
	case "", "events.k8s.io":
		return "core"
	}
	first, _, _ := strings.Cut(group, ".")
	return first
}

// clause is one entry of an Accept header.
type clause struct {
	main, sub string
	q         float64
	params    []param
}

type param struct{ name, value string }

// maxClauses limits the clauses of an Accept header that are read. Browsers send ten; a header may have a million, for which memory
// would be needed.
const maxClauses = 256

// parseAccept splits an Accept header into clauses, best first. Malformed clauses
// and parameters are left out. Nothing is unquoted and q=0 does not exclude: this
// is the reading of stock servers, and clients have grown around it.
func parseAccept(header string) []clause {
	clauses := make([]clause, 0, min(1+strings.Count(header, ","), maxClauses))
	for read := 0; header != "" && read < maxClauses; read++ {
		var part string
		part, header, _ = strings.Cut(header, ",")
		if c, ok := parseClause(strings.Trim(part, " ")); ok {
			clauses = append(clauses, c)
		}
	}
	// The comparison is no proper order where weights and wildcards disagree; the
	// algorithm is then part of the result.
	sort.Slice(clauses, func(i, j int) bool {
		a, b := &clauses[i], &clauses[j]
		return a.q > b.q || a.main != "*" && b.main == "*" || a.sub != "*" && b.sub == "*"
	})
	return clauses
}

func parseClause(part string) (clause, bool) {
	c := clause{q: 1}
	name, rest, _ := strings.Cut(part, ";")
	main, sub, _ := strings.Cut(name, "/")
	c.main = strings.Trim(main, " ")
	switch {
	case sub == "" && c.main == "*":
		c.sub = "*"
	case sub == "":
		return c, false
	default:
		// A slash at the very end is forgiven.
		first, more, _ := strings.Cut(sub, "/")
		if more != "" {
			return c, false
		}
		c.sub = strings.Trim(first, " ")
	}
	for rest != "" {
		var p string
		p, rest, _ = strings.Cut(rest, ";")
		name, value, _ := strings.Cut(p, "=")
		if value == "" {
			continue
		}
		value, more, _ := strings.Cut(value, "=")
		if more != "" {
			continue
		}
		if name = strings.Trim(name, " "); name == "q" {
			c.q, _ = strconv.ParseFloat(value, 32)
			continue
		}
		c.set(name, strings.Trim(value, " "))
	}
	return c, true
}

// maxParams limits the parameters of a clause that are read. Clients send three or four; a header may have a hundred
// thousand.
const maxParams = 64

// set keeps the last value of a repeated parameter.
func (c *clause) set(name, value string) {
	for i := range c.params {
		if c.params[i].name == name {
			c.params[i].value = value
			return
		}
	}
	if len(c.params) < maxParams {
		c.params = append(c.params, param{name, value})
	}
}
