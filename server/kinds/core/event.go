package core

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// Event has the rules for Events, under their name in core/v1 and under the one in
// events.k8s.io/v1, which has stricter rules.
var Event = kinds.Typed[*corev1.Event]{
	ValidateName:          path.ValidatePathSegmentName,
	Meta:                  &kinds.MetaRules{AnyFinalizer: true, ValidateLast: true}, // the newer form looks itself
	ValidateIn:            validateEvent,
	ValidateUpdateIn:      validateEventUpdate,
	CreateOnUpdate:        true,
	UnconditionalUpdate:   true,
	ForbidFinalizeOrphans: true,
}.Strategy()

// EventFields are the selectable fields of Events.
var EventFields = []kinds.SelectableField{
	{Label: "involvedObject.kind", Path: []string{"involvedObject", "kind"}},
	{Label: "involvedObject.namespace", Path: []string{"involvedObject", "namespace"}},
	{Label: "involvedObject.name", Path: []string{"involvedObject", "name"}},
	{Label: "involvedObject.uid", Path: []string{"involvedObject", "uid"}},
	{Label: "involvedObject.apiVersion", Path: []string{"involvedObject", "apiVersion"}},
	{Label: "involvedObject.resourceVersion", Path: []string{"involvedObject", "resourceVersion"}},
	{Label: "involvedObject.fieldPath", Path: []string{"involvedObject", "fieldPath"}},
	{Label: "reason", Path: []string{"reason"}},
	{Label: "reportingComponent", Path: []string{"reportingComponent"}},
	{Label: "source", Func: eventSource},
	{Label: "type", Path: []string{"type"}},
}

// eventSource returns the component that reported an encoded event, under its older
// name if it has one.
func eventSource(encoded []byte) string {
	var e struct {
		Source             corev1.EventSource `json:"source"`
		ReportingComponent string             `json:"reportingComponent"`
	}
	if json.Unmarshal(encoded, &e) != nil {
		return ""
	}
	if e.Source.Component != "" {
		return e.Source.Component
	}
	return e.ReportingComponent
}

// EventColumns is their Table form.
var EventColumns = columns.Of(eventCells,
	columns.Text("Last Seen", corev1.Event{}.SwaggerDoc()["lastTimestamp"]),
	columns.Text("Type", corev1.Event{}.SwaggerDoc()["type"]),
	columns.Text("Reason", corev1.Event{}.SwaggerDoc()["reason"]),
	columns.Text("Object", corev1.Event{}.SwaggerDoc()["involvedObject"]),
	columns.Wide(columns.Text("Subobject", corev1.ObjectReference{}.SwaggerDoc()["fieldPath"])),
	columns.Wide(columns.Text("Source", corev1.Event{}.SwaggerDoc()["source"])),
	columns.Text("Message", corev1.Event{}.SwaggerDoc()["message"]),
	columns.Wide(columns.Text("First Seen", corev1.Event{}.SwaggerDoc()["firstTimestamp"])),
	columns.Wide(columns.Text("Count", corev1.Event{}.SwaggerDoc()["count"])),
	columns.Wide(columns.Name()))

func eventCells(e *corev1.Event, now time.Time) []any {
	first := columns.Since(e.FirstTimestamp, now)
	if e.FirstTimestamp.IsZero() {
		first = columns.Since(metav1.Time{Time: e.EventTime.Time}, now)
	}
	last, count := columns.Since(e.LastTimestamp, now), e.Count
	if e.LastTimestamp.IsZero() {
		last = first
	}
	switch {
	case e.Series != nil:
		last, count = columns.Since(metav1.Time{Time: e.Series.LastObservedTime.Time}, now), e.Series.Count
	case count == 0:
		count = 1
	}
	target := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name != "" {
		target += "/" + e.InvolvedObject.Name
	}
	return []any{
		last, e.Type, e.Reason, target, e.InvolvedObject.FieldPath, eventSourceCell(e),
		strings.TrimSpace(e.Message), first, int64(count), e.Name,
	}
}

// eventSourceCell names the component and, where known, its instance.
func eventSourceCell(e *corev1.Event) string {
	component, instance := e.Source.Component, e.Source.Host
	component = cmp.Or(component, e.ReportingController)
	instance = cmp.Or(instance, e.ReportingInstance)
	if instance == "" {
		return component
	}
	return component + ", " + instance
}

// Lengths that newer events keep to, in bytes.
const (
	maxEventField = 128
	maxEventNote  = 1024
)

// newStyle reports whether a client addressed events under their newer name.
func newStyle(ctx context.Context) bool {
	r := kinds.Requested(ctx)
	return r != nil && r.Group == eventsv1.GroupName
}

func validateEvent(ctx context.Context, e *corev1.Event) field.ErrorList {
	errs := validateAnyEvent(e, newStyle(ctx))
	if !newStyle(ctx) {
		return errs
	}
	errs = append(errs, kinds.MetaFaults(e, apivalidation.NameIsDNSSubdomain)...)
	errs = append(errs, validateEventSeries(e)...)
	errs = rules.RequiredIf(errs, e.EventTime.IsZero(), field.NewPath("eventTime"), "")
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", e.Type)))
	}
	unset := func(set bool, name string) {
		errs = rules.InvalidIf(errs, set, field.NewPath(name), "", "needs to be unset")
	}
	unset(!e.FirstTimestamp.IsZero(), "firstTimestamp")
	unset(!e.LastTimestamp.IsZero(), "lastTimestamp")
	unset(e.Count != 0, "count")
	unset(e.Source.Component != "" || e.Source.Host != "", "source")
	return errs
}

func validateEventUpdate(ctx context.Context, e, old *corev1.Event) field.ErrorList {
	errs := validateAnyEvent(e, newStyle(ctx))
	if !newStyle(ctx) {
		return errs
	}
	errs = append(errs, kinds.MetaUpdateFaults(e, old)...)
	if !rules.Same(e.Series, old.Series) {
		errs = append(errs, validateEventSeries(e)...)
	}
	same := func(value, old any, name string) {
		errs = append(errs, rules.Immutable(value, old, field.NewPath(name))...)
	}
	same(e.InvolvedObject, old.InvolvedObject, "involvedObject")
	same(e.Reason, old.Reason, "reason")
	same(e.Message, old.Message, "message")
	same(e.Source, old.Source, "source")
	same(e.FirstTimestamp, old.FirstTimestamp, "firstTimestamp")
	same(e.LastTimestamp, old.LastTimestamp, "lastTimestamp")
	same(e.Count, old.Count, "count")
	same(e.Reason, old.Reason, "reason") // a stock server reports it twice
	same(e.Type, old.Type, "type")
	// Clients may send more digits than the wire form keeps.
	if !e.EventTime.Truncate(time.Microsecond).Equal(old.EventTime.Truncate(time.Microsecond)) {
		errs = append(errs, rules.Immutable(e.EventTime, old.EventTime, field.NewPath("eventTime"))...)
	}
	same(e.Action, old.Action, "action")
	same(e.Related, old.Related, "related")
	same(e.ReportingController, old.ReportingController, "reportingController")
	same(e.ReportingInstance, old.ReportingInstance, "reportingInstance")
	return errs
}

func validateEventSeries(e *corev1.Event) field.ErrorList {
	if e.Series == nil {
		return nil
	}
	var errs field.ErrorList
	series := field.NewPath("series")
	errs = rules.InvalidIf(errs, e.Series.Count < 2, series.Child("count"), "", "should be at least 2")
	return rules.RequiredIf(errs, e.Series.LastObservedTime.IsZero(), series.Child("lastObservedTime"), "")
}

// validateAnyEvent holds the rules under either name: one without a time of its
// own is of the older kind.
func validateAnyEvent(e *corev1.Event, newStyle bool) field.ErrorList {
	var errs field.ErrorList
	about := e.InvolvedObject.Namespace
	elsewhere := about != e.Namespace
	if about == "" {
		elsewhere = e.Namespace != metav1.NamespaceNone && e.Namespace != metav1.NamespaceDefault
	}
	if !e.EventTime.IsZero() {
		elsewhere = about == "" && e.Namespace != metav1.NamespaceDefault && e.Namespace != metav1.NamespaceSystem
	}
	errs = rules.InvalidIf(errs, elsewhere, field.NewPath("involvedObject", "namespace"), about, "does not match event.namespace")
	if !e.EventTime.IsZero() {
		errs = append(errs, validateReport(e, newStyle)...)
	}
	return append(errs, rules.Subdomain(e.Namespace, field.NewPath("namespace"))...)
}

// validateReport checks the reporting controller and the action.
func validateReport(e *corev1.Event, newStyle bool) field.ErrorList {
	var errs field.ErrorList
	controller := field.NewPath("reportingComponent")
	if newStyle {
		controller = field.NewPath("reportingController")
	}
	errs = rules.RequiredIf(errs, e.ReportingController == "", controller, "")
	errs = append(errs, rules.Messages(controller, e.ReportingController, validation.IsQualifiedName(e.ReportingController))...)
	bounded := func(value, name string, required bool, most int) {
		p := field.NewPath(name)
		errs = rules.RequiredIf(errs, required && value == "", p, "")
		if len(value) > most {
			errs = append(errs, field.Invalid(p, "", fmt.Sprintf("can have at most %v characters", most)))
		}
	}
	bounded(e.ReportingInstance, "reportingInstance", true, maxEventField)
	bounded(e.Action, "action", true, maxEventField)
	bounded(e.Reason, "reason", true, maxEventField)
	bounded(e.Message, "message", false, maxEventNote)
	return errs
}
