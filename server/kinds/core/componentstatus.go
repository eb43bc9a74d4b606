package core

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/kinds/columns"
)

// ComponentStatusColumns is the Table form of ComponentStatuses.
var ComponentStatusColumns = columns.Of(componentStatusCells, columns.Name(),
	columns.Text("Status", "Status of the component conditions"),
	columns.Text("Message", "Message of the component conditions"),
	columns.Text("Error", "Error of the component conditions"))

func componentStatusCells(c *corev1.ComponentStatus, _ time.Time) []any {
	for _, condition := range c.Conditions {
		if condition.Type != corev1.ComponentHealthy {
			continue
		}
		status := "Unhealthy"
		if condition.Status == corev1.ConditionTrue {
			status = "Healthy"
		}
		return []any{c.Name, status, condition.Message, condition.Error}
	}
	return []any{c.Name, "Unknown", "", ""}
}
