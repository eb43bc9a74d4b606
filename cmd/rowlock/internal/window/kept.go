package window

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cluster"
	"github.com/rowlock/rowlock/server/request"
)

// kept knows which resources have a past. Those of other servers behind this one, and what is
// made up for each request, are answered as they are now, whichever version is asked for: to
// show that would be to show the present as the past.
type kept struct {
	mu     sync.Mutex
	known  map[string]bool // group versions and resources with a past, "v1/pods"
	others map[string]bool // group versions of other servers; nil: not asked for yet
}

// mostKnown is how many resources are remembered.
const mostKnown = 10000

// present says why a list cannot be had as of then; "" if it can. Of each resource one short
// list is asked for, whose answer has to be of the very revision.
func (p *proxy) present(r *http.Request, info *request.Info) string {
	key := groupVersion(info) + "/" + info.Resource
	p.kept.mu.Lock()
	known := p.kept.known[key]
	p.kept.mu.Unlock()
	if known {
		return ""
	}
	if p.kept.elsewhere(r.Context(), p, info) {
		return notKept(info)
	}
	query := url.Values{"limit": {"1"}}
	p.exactly(query)
	code, _, body, err := p.ask(r, r.URL.EscapedPath(), query, "application/json")
	switch {
	case err != nil:
		return "asking whether " + named(info) + " have a past: " + err.Error()
	case code != http.StatusOK:
		return "" // what is asked for gets the same refusal
	case !p.asOfThen(body):
		return notKept(info)
	}
	p.kept.mu.Lock()
	defer p.kept.mu.Unlock()
	if p.kept.known == nil || len(p.kept.known) >= mostKnown {
		p.kept.known = map[string]bool{}
	}
	p.kept.known[key] = true
	return ""
}

// elsewhere says whether another server answers for the resource, as far as the user may see
// which do. One that keeps versions of its own counts them by itself.
func (k *kept) elsewhere(ctx context.Context, p *proxy, info *request.Info) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.others == nil {
		var list struct {
			Items []struct {
				Spec struct {
					Group, Version string
					Service        *struct{} `json:"service"`
				} `json:"spec"`
			} `json:"items"`
		}
		// Who may not list them goes by the versions of answers alone.
		err := p.config.Client.Do(ctx, cluster.Request{Path: "/apis/apiregistration.k8s.io/v1/apiservices"}, &list)
		if ctx.Err() != nil {
			return false
		}
		k.others = map[string]bool{}
		for i := range list.Items {
			if spec := &list.Items[i].Spec; err == nil && spec.Service != nil {
				k.others[spec.Group+"/"+spec.Version] = true
			}
		}
	}
	return k.others[groupVersion(info)]
}

// asOfThen says whether a list says that it is of the revision.
func (p *proxy) asOfThen(body []byte) bool {
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

// named is a resource with its group, if it has one.
func named(info *request.Info) string { return strings.TrimSuffix(info.Resource+"."+info.Group, ".") }

func groupVersion(info *request.Info) string { return info.Group + "/" + info.Version }
