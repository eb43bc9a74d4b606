package discovery

import (
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/version"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/status"
)

// encodeVersion indents the document, because people read it.
func encodeVersion(v version.Info) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the version: %w", err)
	}
	return b, nil
}

func (h *Handler) serveVersion(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		h.config.Fail(w, r, status.NotAllowed())
		return
	}
	if err := codecs.Acceptable(r, []string{codecs.JSON}); err != nil {
		h.config.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", codecs.JSON)
	_, _ = w.Write(h.version) // the client has disconnected
}
