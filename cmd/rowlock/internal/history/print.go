package history

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
)

// printer writes revisions one by one, as the history may be larger than memory.
type printer interface {
	add(r *revisions.Revision) error
	end() error
}

// print writes revisions as the server sends them, newest first.
func (o *historyOptions) print(ctx context.Context, p printer, c *cluster.Client, targets []cluster.Target) error {
	for _, t := range targets {
		_, err := o.each(ctx, c, t, func(r *revisions.Revision) (bool, error) { return true, p.add(r) })
		if err != nil {
			return err
		}
	}
	return p.end()
}

// listPrinter writes a List of the API, as JSON or as YAML.
type listPrinter struct {
	out  *bufio.Writer
	yaml bool
	n    int
}

func (p *listPrinter) add(r *revisions.Revision) error {
	before := ",\n        "
	if p.n == 0 {
		before = "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n        "
	}
	text, err := json.MarshalIndent(r, "        ", "    ")
	if p.yaml && err == nil {
		before = ""
		if p.n == 0 {
			before = "apiVersion: v1\nitems:\n"
		}
		text, err = yaml.Marshal([]*revisions.Revision{r})
	}
	if err != nil {
		return err
	}
	p.n++
	_, _ = p.out.WriteString(before)
	_, err = p.out.Write(text) // a writer that failed once fails from then on
	return err
}

func (p *listPrinter) end() error {
	switch {
	case p.yaml && p.n == 0:
		_, _ = p.out.WriteString("apiVersion: v1\nitems: []\n")
	case p.n == 0:
		_, _ = p.out.WriteString("{\n    \"apiVersion\": \"v1\",\n    \"items\": [")
	case !p.yaml:
		_, _ = p.out.WriteString("\n    ")
	}
	end := "],\n    \"kind\": \"List\",\n    \"metadata\": {}\n}\n"
	if p.yaml {
		end = "kind: List\nmetadata: {}\n"
	}
	_, _ = p.out.WriteString(end)
	return p.out.Flush()
}

// rowPrinter writes a row for each revision.
type rowPrinter struct {
	w *tabwriter.Writer
	n int
}

// rowsPerFlush is the number of rows that are aligned with each other.
const rowsPerFlush = 1000

func newTable(out io.Writer) *tabwriter.Writer {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "OBJECT\tREVISION\tWRITTEN\tCHANGE\tMANAGERS\tUSER\tUID\tSUPERSEDED BY\tFIELDS")
	return w
}

func (p *rowPrinter) add(r *revisions.Revision) error {
	none := func(s string) string {
		if s == "" {
			return "<none>"
		}
		return display.Safe(s)
	}
	_, err := fmt.Fprintf(p.w, "%s/%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", display.Safe(r.Object.Resource), display.Safe(r.Object.Name), none(r.Revision),
		r.WrittenAt.UTC().Format("2006-01-02T15:04:05Z"), none(r.Change), none(strings.Join(r.By(), ",")), none(r.User), none(r.Object.UID), none(r.SupersededBy), none(strings.Join(r.ChangedFields, ",")))
	if p.n++; err == nil && p.n%rowsPerFlush == 0 {
		err = p.w.Flush()
	}
	return err
}

func (p *rowPrinter) end() error { return p.w.Flush() }
