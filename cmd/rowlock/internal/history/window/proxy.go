package window

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/request"
)

// proxy answers reads as of one revision.
type proxy struct {
	config Config
	pass   *httputil.ReverseProxy
	kept   kept
}

// described are the paths of discovery and schemas, which have no history.
var described = []string{"api", "apis", "openapi", "version", "healthz", "livez", "readyz"}

func newProxy(config Config) *proxy {
	p := &proxy{config: config}
	p.pass = &httputil.ReverseProxy{
		Transport: config.Client.Transport(),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(config.Client.Base)
			r.Out.Host = ""
			r.Out.Header.Del("Cookie")
		},
		ErrorLog: log.New(io.Discard, "", 0), // the client gets the error
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, http.StatusBadGateway, "", "asking the server: "+err.Error())
		},
	}
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := request.Parse(r.Method, r.URL)
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if reason := p.closed(r, info); reason != "" {
		p.refuseRequest(w, reason)
		return
	}
	switch {
	case !info.IsResource, info.Group == revisions.Group:
		p.pass.ServeHTTP(w, r)
	case info.Verb == "get":
		p.single(w, r, info)
	default:
		if reason := p.present(r, info); reason != "" {
			p.refuseRequest(w, reason)
			return
		}
		query := r.URL.Query()
		p.exactly(query)
		r.URL.RawQuery = query.Encode()
		p.pass.ServeHTTP(w, r)
	}
}

func (p *proxy) refuseRequest(w http.ResponseWriter, reason string) {
	refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "this is a read-only view of the past, "+p.config.Moment+": "+reason)
}

// closed returns the reason to refuse a request; "" to forward it.
func (p *proxy) closed(r *http.Request, info *request.Info) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(info.Path, "/"), "/")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return "nothing can be changed in it"
	case r.Header.Get("Upgrade") != "":
		return "streams are of the present"
	case !info.IsResource && !slices.Contains(described, first):
		return "only resources have a past, not " + info.Path
	case !info.IsResource:
		return ""
	case info.Group == revisions.Group && info.Verb == "get":
		return "" // differences between two revisions belong to the past, too
	case info.Verb == "watch":
		return "nothing changes in it, so nothing can be watched"
	case info.Subresource != "" && info.Subresource != "status":
		return fmt.Sprintf("%s/%s is of the present", info.Resource, info.Subresource)
	case info.Verb != "get" && info.Verb != "list":
		return info.Verb + " is of the present"
	}
	return ""
}

// exactly requests a list as of the revision. A continue token implies it.
func (p *proxy) exactly(query url.Values) {
	if query.Get("continue") != "" {
		query.Del("resourceVersion")
		query.Del("resourceVersionMatch")
		return
	}
	query.Set("resourceVersion", strconv.FormatInt(p.config.Revision, 10))
	query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
}

// maxSingle is the largest answer about one object, in bytes: the largest object, in a list.
const maxSingle = budget.MostObject + 1<<20

// single answers for one object with a list of it, because lists are available as of a revision. For a user
// who may get the object but not list it, it uses the object's history.
func (p *proxy) single(w http.ResponseWriter, r *http.Request, info *request.Info) {
	up := 1 // segments behind the collection
	if info.Subresource != "" {
		up = 2
	}
	segments := strings.Split(strings.TrimSuffix(r.URL.EscapedPath(), "/"), "/")
	query := r.URL.Query()
	query.Set("fieldSelector", "metadata.name="+info.Name)
	p.exactly(query)
	code, header, body, err := p.ask(r, strings.Join(segments[:len(segments)-up], "/"), query, accepted(r.Header.Values("Accept")))
	switch {
	case err != nil:
		refuse(w, http.StatusBadGateway, "", "asking the server: "+err.Error())
		return
	case code == http.StatusForbidden:
		code, header, body = p.recorded(r, info, code, header, body)
	case code == http.StatusOK && !p.asOfThen(header, body):
		p.refuseRequest(w, notKept(info))
		return
	case code == http.StatusOK:
		if body, err = one(body); err != nil {
			refuse(w, http.StatusBadGateway, "", "the answer of the server: "+err.Error())
			return
		}
		if body == nil {
			p.absent(w, info)
			return
		}
	}
	w.Header().Set("Content-Type", header.Get("Content-Type"))
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may have disconnected
}

// recorded returns the object from its history; the earlier answer, if that is refused, too.
func (p *proxy) recorded(r *http.Request, info *request.Info, code int, header http.Header, body []byte) (int, http.Header, []byte) {
	path := revisions.Root + "/clusterrevisions/"
	if info.Namespace != "" && info.Resource != "namespaces" {
		path = revisions.Root + "/namespaces/" + url.PathEscape(info.Namespace) + "/revisions/"
	}
	path += url.PathEscape(named(info) + ":" + info.Name + ":" + strconv.FormatInt(p.config.Revision, 10))
	got, its, text, err := p.ask(r, path, nil, "application/json")
	var revision revisions.Revision
	if err != nil || got != http.StatusOK || json.Unmarshal(text, &revision) != nil || revision.Content == nil || revision.Deleted() {
		return code, header, body
	}
	return http.StatusOK, its, revision.Content.Raw
}

// ask sends a read with the user's credentials.
func (p *proxy) ask(r *http.Request, path string, query url.Values, accept string) (code int, header http.Header, body []byte, err error) {
	address := strings.TrimSuffix(p.config.Client.Base.String(), "/") + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, nil, err
	}
	for name, values := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") || name == "User-Agent" {
			req.Header[name] = values
		}
	}
	req.Header.Set("Accept", accept)
	resp, err := p.config.Client.Transport().RoundTrip(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxSingle+1))
	if err == nil && len(body) > maxSingle {
		err = fmt.Errorf("the answer is larger than %d MiB", maxSingle>>20)
	}
	return resp.StatusCode, resp.Header, body, err
}

// accepted returns the JSON forms that the client accepts and this proxy can decode. Tables and metadata are
// requested as lists of them.
func accepted(headers []string) string {
	var kept []string
	for _, clause := range strings.Split(strings.Join(headers, ","), ",") {
		clause = strings.TrimSpace(clause)
		if strings.HasPrefix(clause, "application/json") {
			kept = append(kept, strings.Replace(clause, "as=PartialObjectMetadata;", "as=PartialObjectMetadataList;", 1))
		}
	}
	if len(kept) == 0 {
		return "application/json"
	}
	return strings.Join(kept, ",")
}

// one returns the single object of a list, or the table with its row; nil for none.
func one(body []byte) ([]byte, error) {
	var list struct {
		Kind       string            `json:"kind"`
		APIVersion string            `json:"apiVersion"`
		Items      []json.RawMessage `json:"items"`
		Rows       []json.RawMessage `json:"rows"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	switch {
	case list.Kind == "Table" && len(list.Rows) > 0:
		return body, nil
	case len(list.Items) == 0:
		return nil, nil
	case len(list.Items) > 1:
		return nil, errors.New("several objects of one name")
	}
	// Items of a list may lack their kind.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(list.Items[0], &fields); err != nil {
		return nil, err
	}
	fields["kind"], _ = json.Marshal(strings.TrimSuffix(list.Kind, "List"))
	fields["apiVersion"], _ = json.Marshal(list.APIVersion)
	return json.Marshal(fields)
}

func (p *proxy) absent(w http.ResponseWriter, info *request.Info) {
	resource := named(info)
	answer(w, metav1.Status{
		Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: fmt.Sprintf("%s %q not found, %s", resource, info.Name, p.config.Moment),
		Details: &metav1.StatusDetails{Name: info.Name, Group: info.Group, Kind: info.Resource},
	})
}

func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason, message string) {
	answer(w, metav1.Status{Code: code, Reason: reason, Message: message})
}

func answer(w http.ResponseWriter, status metav1.Status) {
	status.Kind, status.APIVersion, status.Status = "Status", "v1", metav1.StatusFailure
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // the client may have disconnected
}
