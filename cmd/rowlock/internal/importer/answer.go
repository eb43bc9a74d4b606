package importer

import (
	"fmt"
	"io"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/server/transfer"
)

// importAnswer is the result for --output json.
type importAnswer struct {
	Source          string   `json:"source"`
	Store           string   `json:"store"`
	DryRun          bool     `json:"dryRun"`
	Refused         bool     `json:"refused"`        // something cannot be read, and nothing was written
	SourceRevision  int64    `json:"sourceRevision"` // the newest of the source
	Revision        int64    `json:"revision"`       // revision after which the new log begins
	Reused          bool     `json:"reused"`         // data of an earlier run was used
	InUse           bool     `json:"inUse"`          // of a dry run: the database is not empty, and an import would be refused
	Done            bool     `json:"done"`           // an earlier run had filled the database, and ended before it reported that
	Seconds         float64  `json:"seconds"`
	TakenAlong      []string `json:"takenAlong"` // files in the data directory
	transfer.Report          // by name and count
	// ResourcesLeft are the resources of a live cluster that were not read.
	ResourcesLeft []remote.Skipped `json:"resourcesLeft"`
}

func (a *importAnswer) table(w io.Writer) {
	fmt.Fprintln(w, "RESOURCE\tOBJECTS\tSIZE")
	for _, r := range a.Resources {
		fmt.Fprintf(w, "%s\t%d\t%s\n", display.Safe(r.Name), r.Objects, cli.Size(r.Bytes))
	}
	if len(a.Left) > 0 {
		fmt.Fprintln(w, "\nLEFT OUT\tKEYS\tFIRST")
	}
	for _, l := range a.Left {
		fmt.Fprintf(w, "%s\t%d\t%q\n", l.Why, l.Keys, l.Names[0])
	}
	if len(a.ResourcesLeft) > 0 {
		fmt.Fprintln(w, "\nRESOURCE LEFT OUT\tREASON")
	}
	for _, l := range a.ResourcesLeft {
		fmt.Fprintf(w, "%s\t%s\n", display.Safe(l.Resource), display.Safe(l.Reason))
	}
	if len(a.Problems) > 0 {
		fmt.Fprintln(w, "\nUNDECODABLE KEY\tPROBLEM")
	}
	for _, p := range a.Problems {
		fmt.Fprintf(w, "%q\t%s\n", p.Key, display.Safe(p.Reason))
	}
	if more := a.Undecodable - int64(len(a.Problems)); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	for _, warning := range a.Warnings {
		fmt.Fprintf(w, "\nnote: %s", display.Safe(warning))
	}
	fmt.Fprintln(w)
	switch verb := "imported"; {
	case a.Refused:
		fmt.Fprintf(w, "nothing was imported from %s\n", a.Source)
	default:
		if a.DryRun {
			verb = "would import"
		}
		if a.Done {
			fmt.Fprintln(w, "an earlier run had filled the database, and ended before it took away the file between: that is done now")
		}
		if a.InUse {
			fmt.Fprintf(w, "the database %s is not empty: an import into it is refused; into an empty one, this is what happens\n", a.Store)
		}
		fmt.Fprintf(w, "%s %d objects and %d claims of addresses and ports from %s at revision %d; the new log begins at %d\n", verb, a.Objects, a.Claims, a.Source, a.SourceRevision, a.Revision)
	}
	for _, name := range a.TakenAlong {
		fmt.Fprintf(w, "taken along: %s\n", name)
	}
}
