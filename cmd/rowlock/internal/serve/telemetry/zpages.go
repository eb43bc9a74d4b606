package telemetry

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
)

// ZPages are the pages of the gates ComponentStatusz and ComponentFlagz: how long the process has run, and its
// flags.
func ZPages(chosen release.Chosen, enabled func(gate string) bool, flags *pflag.FlagSet, started time.Time) map[string]http.Handler {
	pages := map[string]http.Handler{}
	structured := chosen.Has(release.PagesOfPrograms)
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
		pages["/statusz"] = &page{"Statusz", structured, func() (any, []line) {
			up := int64(time.Since(started).Seconds())
			lines := []line{
				{"Started", started.Format(time.UnixDate)},
				{"Up", fmt.Sprintf("%d hr %02d min %02d sec", up/3600, up/60%60, up%60)},
				{"Go version", runtime.Version()},
				{"Binary version", binary},
				{"Emulation version", chosen.String()},
			}
			if structured {
				lines = append(lines, line{"Paths", strings.Join(paths, " ")})
			}
			return &statusz{
				StartTime: metav1.NewTime(started), UptimeSeconds: up, GoVersion: runtime.Version(),
				BinaryVersion: binary, EmulationVersion: chosen.String(), Paths: paths,
			}, lines
		}}
	}
	if enabled("ComponentFlagz") {
		pages["/flagz"] = &page{"Flagz", structured, func() (any, []line) {
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
	asJSON    = "application/json"
	asYAML    = "application/yaml"
	asText    = "text/plain"
)

// pageVersions are the versions of the kinds, and whether clients should use another.
var pageVersions = map[string]bool{"v1alpha1": true, "v1beta1": false}

// page is a page of text for people, and an object for programs that ask for its kind.
type page struct {
	kind       string
	structured bool // there is an object
	make       func() (object any, lines []line)
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	media, version := p.negotiate(r.Header.Get("Accept"))
	object, lines := p.make()
	switch media {
	case "":
		p.refuse(w, r)
	case asText:
		p.text(w, lines)
	default:
		p.object(w, media, version, object)
	}
}

// negotiate finds the media type that the client prefers, "" for none, and the version of the kind.
func (p *page) negotiate(accept string) (media, version string) {
	if accept == "" && p.structured {
		return asText, ""
	}
	for part := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		delete(params, "q")
		charset, has := params["charset"]
		switch media {
		case asText, "text/*", "*/*":
			if len(params) == 0 || len(params) == 1 && has && strings.EqualFold(charset, "utf-8") {
				return asText, ""
			}
		case asJSON, asYAML:
			_, known := pageVersions[params["v"]]
			if p.structured && known && params["g"] == pageGroup && params["as"] == p.kind {
				return media, params["v"]
			}
		}
	}
	return "", ""
}

func (p *page) refuse(w http.ResponseWriter, r *http.Request) {
	if !p.structured {
		http.Error(w, "media type not acceptable, must be: text/plain", http.StatusNotAcceptable)
		return
	}
	status.WriteJSON(w, r, http.StatusNotAcceptable, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + strings.Join([]string{asJSON, asYAML, asText}, ", "),
	})
}

// text writes the page for people.
func (p *page) text(w http.ResponseWriter, lines []line) {
	title := "apiserver " + strings.ToLower(p.kind)
	if !p.structured {
		title = map[string]string{"Statusz": "kube-apiserver statusz", "Flagz": "kube-apiserver flags"}[p.kind]
	}
	w.Header().Set("Content-Type", asText+"; charset=utf-8")
	fmt.Fprintf(w, "\n%s\nWarning: this page is for people who look for a fault. Programs must not read it: its form may change at any time.\n\n", title)
	for _, l := range lines {
		fmt.Fprintf(w, "%s: %s\n", l.name, l.value)
	}
}

// object writes the page for programs.
func (p *page) object(w http.ResponseWriter, media, version string, object any) {
	object.(interface{ is(kind, version string) }).is(p.kind, version)
	data, err := json.MarshalIndent(object, "", "  ")
	if err == nil && media == asYAML {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		http.Error(w, "the page could not be encoded", http.StatusInternalServerError)
		return
	}
	if pageVersions[version] {
		w.Header().Set("Warning", fmt.Sprintf(`299 - "This version of the %s endpoint is deprecated. Please use a newer version."`, strings.ToLower(p.kind)))
	}
	w.Header().Set("Content-Type", fmt.Sprintf("%s;g=%s;v=%s;as=%s", media, pageGroup, version, p.kind))
	_, _ = w.Write(data) // an error means that the client has disconnected
}
