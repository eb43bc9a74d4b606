package flowcontrol

import (
	"fmt"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Producer is the field manager of the objects that are there from the start.
const Producer = "api-priority-and-fairness-config-producer-v1"

// Consumer is the field manager of the Dangling condition.
const Consumer = "api-priority-and-fairness-config-consumer-v1"

// Dangling returns the condition of a flow schema that reports whether its priority level, of
// that name, exists.
func Dangling(level string, exists bool, now time.Time) flowcontrolv1.FlowSchemaCondition {
	c := flowcontrolv1.FlowSchemaCondition{
		Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionTrue, Reason: "NotFound",
		Message:            fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q but there is no such object", level),
		LastTransitionTime: metav1.Time{Time: now},
	}
	if exists {
		c.Status, c.Reason = flowcontrolv1.ConditionFalse, "Found"
		c.Message = fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", level)
	}
	return c
}

// Applied returns the body of an apply that gives a flow schema that condition.
func Applied(schema string, c flowcontrolv1.FlowSchemaCondition) any {
	return map[string]any{
		"apiVersion": flowcontrolv1.SchemeGroupVersion.String(), "kind": "FlowSchema",
		"metadata": map[string]any{"name": schema},
		"status":   flowcontrolv1.FlowSchemaStatus{Conditions: []flowcontrolv1.FlowSchemaCondition{c}},
	}
}
