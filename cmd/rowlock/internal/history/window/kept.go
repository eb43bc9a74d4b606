package window

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/server/request"
)

// kept remembers which resources have history. For resources of aggregated servers, and computed resources,
// servers answer with the present state whatever version the request names; showing that would present it as
// the past.
type kept struct {
	mu    sync.Mutex
	known map[string]bool // group versions and resources with a past, "v1/pods"
}

// maxKnown limits the remembered resources.
const maxKnown = 10000

// present returns the reason why a list cannot be served as of the revision; "" if it can. It requests one short list
// of each resource and checks the revision of the answer.
func (p *proxy) present(r *http.Request, info *request.Info) string {
	key := info.Group + "/" + info.Version + "/" + info.Resource
	p.kept.mu.Lock()
	known := p.kept.known[key]
	p.kept.mu.Unlock()
	if known {
		return ""
	}
	query := url.Values{"limit": {"1"}}
	p.exactly(query)
	code, header, body, err := p.ask(r, r.URL.EscapedPath(), query, "application/json")
	switch {
	case err != nil:
		return "asking whether " + named(info) + " have a past: " + err.Error()
	case code != http.StatusOK:
		return "" // the list itself will get the same refusal
	case !p.asOfThen(header, body):
		return notKept(info)
	}
	p.kept.mu.Lock()
	defer p.kept.mu.Unlock()
	if p.kept.known == nil || len(p.kept.known) >= maxKnown {
		p.kept.known = map[string]bool{}
	}
	p.kept.known[key] = true
	return ""
}

// asOfThen reports whether the server itself has served a list, at the revision. Aggregated servers have resource
// versions of their own.
func (p *proxy) asOfThen(header http.Header, body []byte) bool {
	if cluster.IsForwarded(header) {
		return false
	}
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	return json.Unmarshal(body, &list) == nil && list.Metadata.ResourceVersion == strconv.FormatInt(p.config.Revision, 10)
}

func notKept(info *request.Info) string {
	return fmt.Sprintf("%s are not stored by this server, which knows them as they are now alone", named(info))
}

// named returns a resource with its group, if it has one.
func named(info *request.Info) string { return strings.TrimSuffix(info.Resource+"."+info.Group, ".") }
