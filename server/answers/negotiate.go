package answers

import (
	"slices"

	"github.com/rowlock/rowlock/codecs"
)

// virtual says that a request is about something that is never stored, and so has no
// columns: a review, a binding, a token.
func (q *Request) virtual() bool {
	if q.Sub != nil {
		return q.Sub.Update == nil && q.Sub.Scale == nil
	}
	return q.Resource.Storage == nil && !slices.Contains(q.Resource.Verbs, "list")
}

// offer is what the resource of a request can be answered as.
func (a *Answers) offer(q *Request) codecs.Offer {
	o := codecs.Offer{Types: a.Forms.Types(), Transforms: codecs.ResourceTransforms}
	if q.virtual() || q.Sub != nil && q.Sub.NoTable {
		o.Transforms = codecs.PartialTransforms
	}
	if !q.Resource.Protobuf(q.Sub) {
		o.Plain = a.Forms.CustomTypes()
	}
	return o
}

// BodyTypes are the media types that a body which holds an object may have.
func (a *Answers) BodyTypes(q *Request) []string {
	if !q.Resource.Protobuf(q.Sub) {
		return a.Forms.CustomTypes()
	}
	return a.Forms.Types()
}

// Negotiate finds the form of the answer to a request.
func (a *Answers) Negotiate(q *Request) (codecs.Form, error) {
	o := a.offer(q)
	if q.Resource.NegotiatesFirst() {
		if err := codecs.Acceptable(q.R, o.Types); err != nil {
			return codecs.Form{}, err
		}
	}
	return codecs.Negotiate(q.R, o)
}

// AcceptsList looks at what a request for a list or a watch accepts, before anything else
// is looked at. NegotiateList or NegotiateWatch follow, after the parameters.
func (a *Answers) AcceptsList(q *Request) error {
	if !q.Resource.NegotiatesFirst() {
		return nil
	}
	return codecs.Acceptable(q.R, a.Forms.ListTypes())
}

// NegotiateList finds the form of a list.
func (a *Answers) NegotiateList(q *Request) (codecs.Form, error) {
	return codecs.Negotiate(q.R, a.offer(q))
}

// NegotiateWatch finds the form of a watch. One that tells where its initial events end
// cannot be of tables.
func (a *Answers) NegotiateWatch(q *Request, tables bool) (codecs.Form, error) {
	o := a.offer(q)
	if !tables {
		o.Transforms = codecs.PartialTransforms
	}
	return codecs.NegotiateWatch(q.R, o)
}
