package pods

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
)

// lostNode is the reason of a pod whose node does not report.
const lostNode = "NodeLost"

// ColumnsSince133 returns the Table form since release 1.33: a container that completed hides no other that failed.
func ColumnsSince133() kinds.Columns {
	return columnsOf(func(pod *corev1.Pod, now time.Time) []any { return cellsOf(pod, summarizeSince133(pod), now) })
}

func columnsOf(cells func(*corev1.Pod, time.Time) []any) kinds.Columns {
	spec, status := corev1.PodSpec{}.SwaggerDoc(), corev1.PodStatus{}.SwaggerDoc()
	c := columns.Of(cells,
		columns.Name(),
		columns.Text("Ready", "The aggregate readiness state of this pod for accepting traffic."),
		columns.Text("Status", "The aggregate status of the containers in this pod."),
		columns.Text("Restarts", "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted."),
		columns.Age(),
		columns.Wide(columns.Text("IP", status["podIP"])),
		columns.Wide(columns.Text("Node", spec["nodeName"])),
		columns.Wide(columns.Text("Nominated Node", status["nominatedNodeName"])),
		columns.Wide(columns.Text("Readiness Gates", spec["readinessGates"])),
	)
	c.Conditions = rowConditions
	return c
}

// rowConditions grey out pods that have ended.
func rowConditions(obj kinds.Object) []metav1.TableRowCondition {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	message := ""
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		message = "The pod has completed successfully."
	case corev1.PodFailed:
		message = "The pod failed."
	default:
		return nil
	}
	return []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: string(pod.Status.Phase), Message: message}}
}

func cells(pod *corev1.Pod, now time.Time) []any { return cellsOf(pod, summarize(pod), now) }

func cellsOf(pod *corev1.Pod, s summary, now time.Time) []any {
	return []any{
		pod.Name,
		strconv.Itoa(s.ready) + "/" + strconv.Itoa(s.total),
		s.reason,
		s.restartText(now),
		columns.Since(pod.CreationTimestamp, now),
		orNone(firstIP(&pod.Status)), orNone(pod.Spec.NodeName), orNone(pod.Status.NominatedNodeName), gatesPassed(pod),
	}
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

func firstIP(s *corev1.PodStatus) string {
	if len(s.PodIPs) > 0 {
		return s.PodIPs[0].IP
	}
	return ""
}

func gatesPassed(pod *corev1.Pod) string {
	gates := pod.Spec.ReadinessGates
	if len(gates) == 0 {
		return "<none>"
	}
	passed := 0
	for _, g := range gates {
		if conditionTrue(pod, g.ConditionType) {
			passed++
		}
	}
	return fmt.Sprintf("%d/%d", passed, len(gates))
}

// conditionTrue looks at the first condition of a type.
func conditionTrue(pod *corev1.Pod, t corev1.PodConditionType) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// anyTrue looks at all conditions of a type.
func anyTrue(pod *corev1.Pod, t corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

// summary summarizes the statuses of all containers.
type summary struct {
	ready, total int
	reason       string
	restarts     int
	lastRestart  metav1.Time
	failures     bool // a container that completed hides no other that failed
}

func (s *summary) restartText(now time.Time) string {
	if s.restarts == 0 || s.lastRestart.IsZero() {
		return strconv.Itoa(s.restarts)
	}
	return fmt.Sprintf("%d (%s ago)", s.restarts, columns.Since(s.lastRestart, now))
}

// count adds the restarts of one container.
func (s *summary) count(c *corev1.ContainerStatus) {
	s.restarts += int(c.RestartCount)
	if last := c.LastTerminationState.Terminated; last != nil && s.lastRestart.Before(&last.FinishedAt) {
		s.lastRestart = last.FinishedAt
	}
}

func summarize(pod *corev1.Pod) summary { return summary{}.of(pod) }

func summarizeSince133(pod *corev1.Pod) summary { return summary{failures: true}.of(pod) }

func (s summary) of(pod *corev1.Pod) summary {
	s.total, s.reason = len(pod.Spec.Containers), string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		s.reason = pod.Status.Reason
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.reason = corev1.PodReasonSchedulingGated
		}
	}
	for i := range pod.Spec.InitContainers {
		if podspec.Restartable(&pod.Spec.InitContainers[i]) {
			s.total++
		}
	}
	// While the pod initializes, restarts are those of its init containers; later only sidecars count.
	var beside summary
	if initializing := s.initContainers(pod, &beside); !initializing || conditionTrue(pod, corev1.PodInitialized) {
		s.restarts, s.lastRestart = beside.restarts, beside.lastRestart
		s.containers(pod)
	}
	switch {
	case pod.DeletionTimestamp == nil:
	case pod.Status.Reason == lostNode:
		s.reason = "Unknown"
	case pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded:
		s.reason = "Terminating"
	}
	return s
}

// initContainers walks to the first init container that holds the pod up, if any.
func (s *summary) initContainers(pod *corev1.Pod, beside *summary) (initializing bool) {
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		s.count(c)
		sidecar := podspec.Restartable(findContainer(pod.Spec.InitContainers, c.Name))
		if sidecar {
			beside.count(c)
		}
		ended := c.State.Terminated
		switch {
		case ended != nil && ended.ExitCode == 0:
			continue
		case sidecar && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case ended != nil:
			s.reason = "Init:" + endReason(ended)
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			s.reason = "Init:" + c.State.Waiting.Reason
		default:
			s.reason = fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
		return true
	}
	return false
}

func findContainer(list []corev1.Container, name string) *corev1.Container {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// endReason returns why a container ended: its reason, or else its signal or exit code.
func endReason(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

// containers takes the status of the pod from the first container that is not simply running.
func (s *summary) containers(pod *corev1.Pod) {
	running, failed := false, ""
	for i := len(pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &pod.Status.ContainerStatuses[i]
		s.count(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.reason = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.reason = endReason(c.State.Terminated)
			if c.State.Terminated.ExitCode != 0 {
				failed = s.reason
			}
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.reason != "Completed" {
		return
	}
	switch {
	case running && anyTrue(pod, corev1.PodReady):
		s.reason = "Running"
	case s.failures && failed != "":
		s.reason = failed
	case running:
		s.reason = "NotReady"
	}
}
