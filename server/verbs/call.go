// Package verbs holds what a request for a resource does: one file a verb.
//
// A verb is a method from a Call to an error; what went well has been written,
// errors become a Status in package status alone.
package verbs

import (
	"net/http"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/sqlstore"
)

// Handler serves all resources of a catalogue.
type Handler struct {
	Catalogue *kinds.Catalogue
	Store     *sqlstore.Store
	Cache     *cache.Cache
}

// Call is one request for a resource, after routing.
type Call struct {
	W        http.ResponseWriter
	R        *http.Request
	Info     *request.Info
	Resource *kinds.Resource
	Sub      *kinds.Subresource // nil for the object itself
	User     *authx.Identity
}
