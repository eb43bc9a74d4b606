// Package node holds the strategy of RuntimeClasses.
package node

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// RuntimeClass returns the strategy of RuntimeClasses.
func RuntimeClass(on kinds.Feature) kinds.Strategy {
	now := on.Has(release.KindRules133)
	return kinds.Typed[*nodev1.RuntimeClass]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.MetaRules{Updates: 1, Wholes: 1, AnyFinalizer: true},
		Validate:     func(c *nodev1.RuntimeClass) field.ErrorList { return validateRuntimeClass(c, now) },
		ValidateUpdate: func(c, old *nodev1.RuntimeClass) field.ErrorList {
			return append(validateRuntimeClass(c, now), rules.Immutable(c.Handler, old.Handler, field.NewPath("handler"))...)
		},
		Warnings:       runtimeClassWarnings,
		CreateOnUpdate: true,
	}.Strategy()
}

// RuntimeClassColumns is their Table form.
var RuntimeClassColumns = columns.Of(
	func(c *nodev1.RuntimeClass, now time.Time) []any {
		return []any{c.Name, c.Handler, columns.Since(c.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("Handler", metav1.ObjectMeta{}.SwaggerDoc()["handler"]),
	columns.Age(),
)

// runtimeClassWarnings returns warnings about selectors with former names of labels of nodes.
func runtimeClassWarnings(c, _ *nodev1.RuntimeClass) []string {
	if c.Scheduling == nil {
		return nil
	}
	var warnings []string
	for _, key := range slices.Sorted(maps.Keys(c.Scheduling.NodeSelector)) {
		if msg := podspec.DeprecatedNodeLabel(key); msg != "" {
			warnings = append(warnings, "scheduling.nodeSelector: "+msg)
		}
	}
	return warnings
}

// toleration is one with its seconds in place of a pointer to them, so that equal ones are the
// same.
type toleration struct {
	corev1.Toleration
	timed   bool
	seconds int64
}

func plain(t corev1.Toleration) toleration {
	p := toleration{Toleration: t}
	if t.TolerationSeconds != nil {
		p.TolerationSeconds, p.timed, p.seconds = nil, true, *t.TolerationSeconds
	}
	return p
}

// now are the rules of releases after 1.32.
func validateRuntimeClass(c *nodev1.RuntimeClass, now bool) field.ErrorList {
	var errs field.ErrorList
	if handler := field.NewPath("handler"); now && c.Handler == "" {
		errs = append(errs, field.Required(handler, ""))
	} else {
		errs = rules.Label(c.Handler, handler)
	}
	if c.Overhead != nil {
		errs = append(errs, podspec.ValidateOverhead(c.Overhead.PodFixed, field.NewPath("overhead"))...)
	}
	if s := c.Scheduling; s != nil {
		p := field.NewPath("scheduling")
		errs = append(errs, rules.Labels(s.NodeSelector, p.Child("nodeSelector"))...)
		tolerations := p.Child("tolerations")
		at := tolerations
		if !now {
			at = tolerations.Child("tolerations")
		}
		errs = append(errs, podspec.ValidateTolerations(s.Tolerations, at, podspec.Options{Since133: now})...)
		seen := rules.Seen[toleration]{}
		for i := range rules.Until(&errs, s.Tolerations) {
			if seen.Again(plain(s.Tolerations[i])) {
				errs = append(errs, field.Duplicate(tolerations.Index(i), rules.Shown(s.Tolerations[i])))
			}
		}
	}
	return errs
}
