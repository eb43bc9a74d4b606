package custom

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/schema/jsonpath"
)

// Bounds of the cells of one object, since whoever writes a definition chooses their number and paths: how many values the
// paths may visit, and the bytes of texts after which no more are made.
const (
	maxVisited   = 1 << 20
	maxCellBytes = 4 << 20
)

// column is one column of a definition.
type column struct {
	path *jsonpath.Path
	kind string // "string", "date" ...
}

// columns returns the columns of the version, after the name; without any there is the age. The first invalid
// path ends the list.
func (v *Version) columns() kinds.Columns {
	definitions := []metav1.TableColumnDefinition{columns.Name()}
	list := v.spec.AdditionalPrinterColumns
	if len(list) == 0 {
		list = []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Age", Type: "date", Description: columns.Age().Description, JSONPath: ".metadata.creationTimestamp"},
		}
	}
	var all []column
	for _, c := range list {
		path, err := jsonpath.Parse(c.JSONPath)
		if err != nil {
			break
		}
		all = append(all, column{path, c.Type})
		description := cmp.Or(c.Description, "Custom resource definition column (in JSONPath format): "+c.JSONPath)
		definitions = append(definitions, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority,
		})
	}
	return kinds.Columns{
		Definitions: definitions,
		Cells: func(obj kinds.Object, now time.Time) []any {
			cells := make([]any, 1, 1+len(all))
			cells[0] = obj.GetName()
			left, bytes := jsonpath.Budget(maxVisited), 0
			for _, c := range all {
				var cell any
				if bytes < maxCellBytes {
					cell = c.cell(tree(obj), now, &left)
				}
				if text, ok := cell.(string); ok {
					bytes += len(text)
				}
				cells = append(cells, cell)
			}
			return cells
		},
	}
}

// cell returns the first value that the path leads to, if it has the type of the column.
func (c column) cell(obj map[string]any, now time.Time, left *jsonpath.Budget) any {
	found, err := c.path.Find(obj, left)
	if err != nil || len(found) == 0 {
		return nil
	}
	value := found[0]
	switch c.kind {
	case "string":
		return text(value)
	case "integer":
		switch n := value.(type) {
		case int64:
			return n
		case float64:
			return int64(n)
		}
	case "number":
		switch n := value.(type) {
		case int64:
			return float64(n)
		case float64:
			return n
		}
	case "boolean":
		if b, ok := value.(bool); ok {
			return b
		}
	case "date":
		s, ok := value.(string)
		if !ok {
			return nil
		}
		var at metav1.Time
		if err := at.UnmarshalQueryParameter(s); err != nil {
			return "<invalid>"
		}
		return columns.Since(at, now)
	}
	return nil
}

// text words any value.
func text(value any) any {
	switch value := value.(type) {
	case nil:
		return "<no value>"
	case map[string]any, []any:
		data, err := json.Marshal(value)
		if err != nil {
			return nil
		}
		return string(data)
	}
	return fmt.Sprint(value)
}
