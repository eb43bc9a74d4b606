package relay

import (
	"maps"
	"net/http"
)

// maxEarly bounds the informational responses (1xx) of another server before its answer.
const maxEarly = 16

// Final writes the answer of another server to a client. It drops informational responses: package
// httputil clears all headers after each of them, also those that this server has set, and nothing here
// expects an answer to begin more than once. A code of less or more than three digits, which Go's client accepts, becomes a 502:
// one under 100 must not pass for an early answer, whose body would follow an implicit 200, and package net/http panics for one
// above 999.
type Final struct {
	http.ResponseWriter
	own   http.Header // set by this server
	end   func()
	early int
}

// NewFinal makes one around w, whose headers are set. It calls end, which must end the request to the
// other server, after too many informational responses.
func NewFinal(w http.ResponseWriter, end func()) *Final {
	return &Final{ResponseWriter: w, own: maps.Clone(w.Header()), end: end}
}

// WriteHeader implements http.ResponseWriter.
func (f *Final) WriteHeader(code int) {
	if code < 100 || code > 999 {
		code = http.StatusBadGateway
	}
	if code < 200 { // a requested switch of protocols is written to the connection itself
		if f.early++; f.early > maxEarly {
			f.end()
		}
		return
	}
	h := f.Header()
	for name, values := range f.own {
		if _, kept := h[name]; !kept {
			h[name] = values
		}
	}
	f.ResponseWriter.WriteHeader(code)
}

// Unwrap serves http.ResponseController.
func (f *Final) Unwrap() http.ResponseWriter { return f.ResponseWriter }
