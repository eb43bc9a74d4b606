package archive

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// Format of an export.
type Format string

const (
	SQL  Format = "sql"  // a table objects and its rows, for SQLite and PostgreSQL alike
	YAML Format = "yaml" // one document for each object
)

// Export writes the objects as they were at a revision (0: now), in key order.
// It returns how many, and at which revision. Errors: CompactedError,
// FutureError, and those of the driver.
func Export(ctx context.Context, d sqlstore.Driver, out io.Writer, format Format, revision int64) (objects, at int64, err error) {
	write := writeSQL
	switch format {
	case SQL:
	case YAML:
		write = writeYAML
	default:
		return 0, 0, fmt.Errorf("unknown export format %q", format)
	}
	window, release, err := upkeep.Hold(ctx, d)
	if err != nil {
		return 0, 0, fmt.Errorf("exporting: %w", err)
	}
	defer release()
	if at = revision; at == 0 {
		at = window.Head
	}
	w := bufio.NewWriterSize(out, 1<<16)
	if format == SQL {
		fmt.Fprintf(w, "-- Objects at revision %d.\nBEGIN;\nCREATE TABLE objects (resource TEXT, namespace TEXT, name TEXT, revision BIGINT, value TEXT, PRIMARY KEY (resource, namespace, name));\n", at)
	}
	err = upkeep.Snapshot(ctx, d, at, func(rows []sqlstore.Row) error {
		for _, row := range rows {
			if err := write(w, row); err != nil {
				return err
			}
			objects++
		}
		return nil
	})
	if err == nil && format == SQL {
		fmt.Fprint(w, "COMMIT;\n")
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return objects, at, fmt.Errorf("exporting: %w", err)
	}
	return objects, at, nil
}

func writeSQL(w *bufio.Writer, row sqlstore.Row) error {
	value := "NULL" // damaged
	if json.Valid(row.Value) {
		value = quote(string(row.Value))
	}
	_, err := fmt.Fprintf(w, "INSERT INTO objects VALUES (%s, %s, %s, %d, %s);\n", quote(row.Key.Resource), quote(row.Key.Namespace), quote(row.Key.Name), row.Revision, value)
	return err
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func writeYAML(w *bufio.Writer, row sqlstore.Row) error {
	var object map[string]any
	if err := yaml.Unmarshal(row.Value, &object); err != nil || object == nil {
		_, err := fmt.Fprintf(w, "---\n# %s at revision %d is damaged\n", row.Key, row.Revision)
		return err
	}
	if meta, ok := object["metadata"].(map[string]any); ok {
		meta["resourceVersion"] = strconv.FormatInt(row.Revision, 10)
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("%s: %w", row.Key, err)
	}
	_, err = fmt.Fprintf(w, "---\n%s", text)
	return err
}
