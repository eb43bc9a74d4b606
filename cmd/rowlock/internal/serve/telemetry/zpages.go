package telemetry

import (
	"fmt"
	"mime"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/server/release"
)

// ZPages are the pages of the gates ComponentStatusz and ComponentFlagz: how long the process has run, and its
// flags.
func ZPages(chosen release.Chosen, enabled func(gate string) bool, flags *pflag.FlagSet, started time.Time) map[string]http.Handler {
	pages := map[string]http.Handler{}
	if enabled("ComponentStatusz") {
		pages["/statusz"] = page("statusz", func(line func(name, value string)) {
			up := int64(time.Since(started).Seconds())
			line("Started", started.Format(time.UnixDate))
			line("Up", fmt.Sprintf("%d hr %02d min %02d sec", up/3600, up/60%60, up%60))
			line("Go version", runtime.Version())
			line("Binary version", chosen.Binary().String()+".0")
			line("Emulation version", chosen.String())
		})
	}
	if enabled("ComponentFlagz") {
		pages["/flagz"] = page("flags", func(line func(name, value string)) {
			flags.VisitAll(func(f *pflag.Flag) {
				value := f.Value.String()
				if f.Name == "store" && value != "" {
					value = database.PublicURL(value)
				}
				line(f.Name, value)
			})
		})
	}
	return pages
}

// page is a page of plain text for people.
func page(title string, write func(line func(name, value string))) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !acceptsText(r.Header.Get("Accept")) {
			http.Error(w, "media type not acceptable, must be: text/plain", http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "\nkube-apiserver %s\nWarning: this page is for people who look for a fault. Programs must not read it: its form may change at any time.\n\n", title)
		write(func(name, value string) { fmt.Fprintf(w, "%s: %s\n", name, value) })
	})
}

// acceptsText reports whether a client accepts plain text in UTF-8.
func acceptsText(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil || media != "text/plain" && media != "text/*" && media != "*/*" {
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
