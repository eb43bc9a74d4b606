package status

import (
	"encoding/json"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/forms"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/request"
)

// Write answers a request with a Status, in the form that it accepts.
func Write(w http.ResponseWriter, r *http.Request, st *metav1.Status, served forms.Forms) {
	if a := request.From(r.Context()).Audit; a != nil {
		a.ResponseStatus(st)
	}
	form := codecs.NegotiateError(r, served.Types())
	data, err := served.Codec(form.Type).Encode(nil, st)
	if err == nil && form.Pretty {
		data, err = jsoncodec.Indent(nil, data)
	} else if err == nil && form.Type == codecs.JSON {
		data = append(data, '\n')
	}
	if err != nil {
		http.Error(w, "the error could not be encoded", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	if st.Details != nil && st.Details.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(st.Details.RetryAfterSeconds)))
	}
	h.Set("Content-Type", form.Type)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(int(st.Code))
	_, _ = w.Write(data)
}

// WriteJSON answers a path that has JSON alone.
func WriteJSON(w http.ResponseWriter, r *http.Request, code int, obj any) {
	data, err := json.MarshalIndent(obj, "", "  ")
	if err != nil {
		http.Error(w, "the answer could not be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", codecs.JSON)
	w.WriteHeader(code)
	_, _ = w.Write(data) // the client has disconnected
}
