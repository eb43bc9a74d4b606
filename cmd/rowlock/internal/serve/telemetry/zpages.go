package telemetry

import (
	"fmt"
	"mime"
	"net/http"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/forms"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
)

// ZPages returns the pages of the gates ComponentStatusz and ComponentFlagz: how long the process has run, and its
// flags.
func ZPages(chosen release.Chosen, enabled func(gate string) bool, flags *pflag.FlagSet, started time.Time) map[string]http.Handler {
	pages := map[string]http.Handler{}
	structured := chosen.Has(release.PagesOfPrograms)
	forms := forms.Forms{CBOR: enabled("CBORServingAndStorage")}
	paths := []string{"/healthz", "/livez", "/metrics", "/readyz", "/version"}
	if enabled("ComponentFlagz") {
		paths = append([]string{"/flagz"}, paths...)
	}
	if enabled("ComponentStatusz") {
		paths = append(paths[:len(paths)-1], "/statusz", "/version")
		binary := chosen.Binary().String() + ".0"
		if structured {
			binary = chosen.Patch()
		}
		pages["/statusz"] = &page{"Statusz", structured, forms, func() (any, []line) {
			up := int64(time.Since(started).Seconds())
			lines := []line{
				{"Started", started.Format(time.UnixDate)},
				{"Up", fmt.Sprintf("%d hr %02d min %02d sec", up/3600, up/60%60, up%60)},
				{"Go version", goruntime.Version()},
				{"Binary version", binary},
				{"Emulation version", chosen.String()},
			}
			if structured {
				lines = append(lines, line{"Paths", strings.Join(paths, " ")})
			}
			return &statusz{
				StartTime: metav1.NewTime(started), UptimeSeconds: up, GoVersion: goruntime.Version(),
				BinaryVersion: binary, EmulationVersion: chosen.String(), Paths: paths,
			}, lines
		}}
	}
	if enabled("ComponentFlagz") {
		pages["/flagz"] = &page{"Flagz", structured, forms, func() (any, []line) {
			var lines []line
			all := flagz{Flags: map[string]string{}}
			flags.VisitAll(func(f *pflag.Flag) {
				value := f.Value.String()
				if f.Name == "store" && value != "" {
					value = database.PublicURL(value)
				}
				lines = append(lines, line{f.Name, value})
				all.Flags[f.Name] = value
			})
			return &all, lines
		}}
	}
	return pages
}

type line struct{ name, value string }

// header is the common part of structured pages.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

func (h *header) is(kind, version string) {
	h.Kind, h.APIVersion, h.Metadata.Name = kind, pageGroup+"/"+version, "apiserver"
}

// statusz and flagz are the kinds of config.k8s.io.
type statusz struct {
	header           `json:",inline"`
	StartTime        metav1.Time `json:"startTime"`
	UptimeSeconds    int64       `json:"uptimeSeconds"`
	GoVersion        string      `json:"goVersion"`
	BinaryVersion    string      `json:"binaryVersion"`
	EmulationVersion string      `json:"emulationVersion,omitempty"`
	Paths            []string    `json:"paths"`
}

type flagz struct {
	header `json:",inline"`
	Flags  map[string]string `json:"flags,omitempty"`
}

const (
	pageGroup = "config.k8s.io"
	asText    = "text/plain"
)

// pageVersions are the versions of the kinds, and whether clients should use another.
var pageVersions = map[string]bool{"v1alpha1": true, "v1beta1": false}

// page is a page of text, or an object for clients that accept its kind.
type page struct {
	kind       string
	structured bool        // there is an object
	forms      forms.Forms // of the object
	make       func() (object any, lines []line)
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	object, lines := p.make()
	switch {
	case !p.structured && !acceptsText(r.Header.Get("Accept")):
		http.Error(w, "media type not acceptable, must be: text/plain", http.StatusNotAcceptable)
		return
	case !p.structured || strings.TrimSpace(r.Header.Get("Accept")) == "":
		p.text(w, lines)
		return
	}
	types := []string{codecs.JSON, codecs.YAML, asText}
	if p.forms.CBOR {
		types = append(types, codecs.CBOR)
	}
	form, err := codecs.Negotiate(r, codecs.Offer{Types: types, Plain: []string{asText}, Transforms: p.has})
	if err != nil {
		refused, _ := status.Of(err, schema.GroupResource{})
		form = codecs.NegotiateError(r, types)
		p.write(w, http.StatusNotAcceptable, form, form.Type, refused)
		return
	}
	if form.Type == asText {
		p.text(w, lines)
		return
	}
	p.object(w, form, object)
}

// has reports whether the page has a form of that kind.
func (p *page) has(mediaType string, as schema.GroupVersionKind) bool {
	_, known := pageVersions[as.Version]
	return known && mediaType != asText && as.Group == pageGroup && as.Kind == p.kind
}

// acceptsText reports whether an Accept header allows text in UTF-8.
func acceptsText(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil || media != asText && media != "text/*" && media != "*/*" {
			continue
		}
		delete(params, "q")
		charset, has := params["charset"]
		if len(params) == 0 || len(params) == 1 && has && strings.EqualFold(charset, "utf-8") {
			return true
		}
	}
	return false
}

// text writes the page for people.
func (p *page) text(w http.ResponseWriter, lines []line) {
	title := "apiserver " + strings.ToLower(p.kind)
	if !p.structured {
		title = map[string]string{"Statusz": "kube-apiserver statusz", "Flagz": "kube-apiserver flags"}[p.kind]
	}
	w.Header().Set("Content-Type", asText+"; charset=utf-8")
	fmt.Fprintf(w, "\n%s\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n\n", title)
	for _, l := range lines {
		fmt.Fprintf(w, "%s: %s\n", l.name, l.value)
	}
}

// object writes the page for programs.
func (p *page) object(w http.ResponseWriter, form codecs.Form, object any) {
	object.(interface{ is(kind, version string) }).is(p.kind, form.As.Version)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		http.Error(w, "the page could not be encoded", http.StatusInternalServerError)
		return
	}
	if pageVersions[form.As.Version] {
		w.Header().Set("Warning", fmt.Sprintf(`299 - "This version of the %s endpoint is deprecated. Please use a newer version."`, strings.ToLower(p.kind)))
	}
	mediaType := fmt.Sprintf("%s;g=%s;v=%s;as=%s", form.Type, pageGroup, form.As.Version, p.kind)
	p.write(w, http.StatusOK, form, mediaType, &unstructured.Unstructured{Object: content})
}

// write writes an object in a form.
func (p *page) write(w http.ResponseWriter, code int, form codecs.Form, mediaType string, obj runtime.Object) {
	data, err := p.forms.Codec(form.Type).Encode(nil, obj)
	if err == nil && form.Pretty {
		data, err = json.Indent(nil, data)
	}
	if err != nil {
		http.Error(w, "the page could not be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(code)
	_, _ = w.Write(data) // an error means that the client has disconnected
}
