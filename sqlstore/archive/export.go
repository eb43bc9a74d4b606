package archive

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive/recreate"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// Format of an export.
type Format string

const (
	SQL  Format = "sql"  // a table objects and its rows, for SQLite and PostgreSQL alike
	YAML Format = "yaml" // one document for each object, as kubectl apply takes it
)

// ExportOptions select the objects to export.
type ExportOptions struct {
	Format    Format
	Revision  int64  // 0: now
	Resource  string // one resource ("pods", "deployments.apps"); "": all
	Namespace string // one namespace; "": all, and cluster-scoped objects
	AsStored  bool   // YAML with every field that is stored, and the resource version
	Progress  func(objects int64)
	// Open decrypts a row in place, or ends the export; may be nil.
	Open func(row *sqlstore.Row) error
}

// Exported describes an export.
type Exported struct {
	Objects  int64
	Damaged  int64 // of these; their contents are missing
	Revision int64
}

// ExportFile writes an export to a file that appears when it is complete. Errors: those of Export.
func ExportFile(ctx context.Context, d sqlstore.Driver, path string, opt ExportOptions) (done Exported, err error) {
	err = WriteFile(path, func(f io.Writer) error {
		done, err = Export(ctx, d, f, opt)
		return err
	})
	if err != nil {
		err = fmt.Errorf("exporting to %s: %w", path, err)
	}
	return done, err
}

// Export writes the objects as of a revision, in key order; as YAML, objects that others need come first. YAML omits rows that
// are not API objects, and has a comment for a damaged object, where SQL has NULL. Errors: CompactedError, FutureError, and
// those of the driver.
func Export(ctx context.Context, d sqlstore.Driver, out io.Writer, opt ExportOptions) (Exported, error) {
	e := &exporter{w: bufio.NewWriterSize(out, 1<<16), opt: opt}
	switch opt.Format {
	case SQL:
		e.write = e.sql
	case YAML:
		e.write = e.yaml
	default:
		return Exported{}, fmt.Errorf("unknown export format %q", opt.Format)
	}
	window, release, err := upkeep.Hold(ctx, d)
	if err != nil {
		return Exported{}, err
	}
	defer release()
	if e.done.Revision = opt.Revision; e.done.Revision == 0 {
		e.done.Revision = window.Head
	}
	if err = e.all(ctx, d, e.done.Revision); err == nil {
		err = e.w.Flush()
	}
	return e.done, err
}

type exporter struct {
	w     *bufio.Writer
	opt   ExportOptions
	write func(sqlstore.Row) error
	done  Exported
}

// first are the resources that objects of others cannot be created without.
var first = []string{"namespaces", "customresourcedefinitions.apiextensions.k8s.io", "priorityclasses.scheduling.k8s.io", "serviceaccounts"}

func (e *exporter) all(ctx context.Context, d sqlstore.Driver, at int64) error {
	scan := func(resource string, skip map[string]bool) error {
		req := sqlstore.ScanRequest{Resource: resource, Namespace: e.opt.Namespace, Revision: at}
		return upkeep.Scan(ctx, d, req, func(rows []sqlstore.Row) error { return e.page(rows, skip) })
	}
	if e.opt.Format == SQL {
		fmt.Fprintf(e.w, "-- Objects at revision %d.\nBEGIN;\nCREATE TABLE objects (resource TEXT, namespace TEXT, name TEXT, revision BIGINT, value TEXT, PRIMARY KEY (resource, namespace, name));\n", at)
		if err := scan(e.opt.Resource, nil); err != nil {
			return err
		}
		_, err := fmt.Fprint(e.w, "COMMIT;\n")
		return err
	}
	fmt.Fprintf(e.w, "# Objects at revision %d.\n", at)
	if e.opt.Resource != "" {
		return scan(e.opt.Resource, nil)
	}
	done := make(map[string]bool)
	for _, resource := range first {
		if err := scan(resource, nil); err != nil {
			return err
		}
		done[resource] = true
	}
	return scan("", done)
}

func (e *exporter) page(rows []sqlstore.Row, skip map[string]bool) error {
	for _, row := range rows {
		if skip[row.Key.Resource] {
			continue
		}
		if row.Damaged != nil {
			row.Value = nil // which is reported as damaged
		} else if e.opt.Open != nil {
			if err := e.opt.Open(&row); err != nil {
				return err
			}
		}
		if err := e.write(row); err != nil {
			return err
		}
	}
	if e.opt.Progress != nil {
		e.opt.Progress(e.done.Objects)
	}
	return nil
}

func (e *exporter) sql(row sqlstore.Row) error {
	value := "NULL" // damaged
	if json.Valid(row.Value) {
		value = quote(string(row.Value))
	} else {
		e.done.Damaged++
	}
	e.done.Objects++
	_, err := fmt.Fprintf(e.w, "INSERT INTO objects VALUES (%s, %s, %s, %d, %s);\n", quote(row.Key.Resource), quote(row.Key.Namespace), quote(row.Key.Name), row.Revision, value)
	return err
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (e *exporter) yaml(row sqlstore.Row) error {
	if strings.HasPrefix(row.Key.Resource, "~") { // a taken address or port, which follows from its object
		return nil
	}
	e.done.Objects++
	title := printable(fmt.Sprintf("%s at revision %d", row.Key, row.Revision))
	var object map[string]any
	dec := json.NewDecoder(bytes.NewReader(row.Value))
	dec.UseNumber() // numbers stay as they are written
	if err := dec.Decode(&object); err != nil || object == nil {
		e.done.Damaged++
		_, err := fmt.Fprintf(e.w, "---\n# %s is damaged\n", title)
		return err
	}
	if meta, ok := object["metadata"].(map[string]any); ok && e.opt.AsStored {
		meta["resourceVersion"] = strconv.FormatInt(row.Revision, 10)
	} else if ok {
		recreate.Object(row.Key.Resource, object)
	}
	text, err := json.Marshal(object)
	if err == nil {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", row.Key, err)
	}
	_, err = fmt.Fprintf(e.w, "---\n# %s\n%s", title, text)
	return err
}

// printable keeps a name from ending the comment that contains it.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
