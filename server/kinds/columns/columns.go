// Package columns builds the Table form of built-in kinds: the columns that most of
// them share, and the texts of their cells.
package columns

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/kinds"
)

// Column is one column's definition.
type Column = metav1.TableColumnDefinition

// Of makes the columns of a kind from a function over its Go type.
func Of[T kinds.Object](cells func(obj T, now time.Time) []any, definitions ...Column) kinds.Columns {
	return kinds.Columns{
		Definitions: definitions,
		Cells: func(obj kinds.Object, now time.Time) []any {
			typed, ok := obj.(T)
			if !ok {
				return nil
			}
			return cells(typed, now)
		},
	}
}

// Name returns the first column of nearly every kind.
func Name() Column {
	return Column{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]}
}

// Age returns the column of the time since creation.
func Age() Column {
	return Column{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]}
}

// Text, Number and Flag are columns of strings, integers and booleans.
func Text(name, description string) Column {
	return Column{Name: name, Type: "string", Description: description}
}

func Number(name, description string) Column {
	return Column{Name: name, Type: "integer", Description: description}
}

func Flag(name, description string) Column {
	return Column{Name: name, Type: "boolean", Description: description}
}

// Wide makes a column visible only in wide output.
func Wide(c Column) Column {
	c.Priority = 1
	return c
}

// Containers returns the wide columns that workloads share, before their selector.
func Containers() []Column {
	return []Column{
		Wide(Text("Containers", "Names of each container in the template.")),
		Wide(Text("Images", "Images referenced by each container in the template.")),
	}
}

// Since words a time as the age of something, "<unknown>" where it is not set.
// Every text that depends on now must come from here: with a zero now it is a mark
// that package table fills in for each request, so that cells can be kept.
func Since(t metav1.Time, now time.Time) string {
	switch {
	case t.IsZero():
		return "<unknown>"
	case now.IsZero():
		return table.Mark(t.Time)
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// ContainerCells lists names and images of containers.
func ContainerCells(containers []corev1.Container) (names, images string) {
	n := make([]string, len(containers))
	i := make([]string, len(containers))
	for k := range containers {
		n[k], i[k] = containers[k].Name, containers[k].Image
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

// Selector words a label selector in its short form.
func Selector(s *metav1.LabelSelector) string {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return "<invalid>"
	}
	return selector.String()
}

// LongSelector words a label selector as it is, "<none>" where it selects everything.
func LongSelector(s *metav1.LabelSelector) string { return metav1.FormatLabelSelector(s) }
