package convert

import (
	"fmt"
	"math"
	"strconv"
)

// workloadDefaults are the defaults of earlier versions for fields that in apps/v1 have another default, or
// are required.
type workloadDefaults struct {
	selector         bool // and labels: those of the template
	surge            any  // of rolling updates of Deployments; nil: as in apps/v1
	history          int64
	deadline         int64
	updatesOnRequest bool // StatefulSets and DaemonSets
}

var (
	extensionsDefaults = workloadDefaults{selector: true, surge: int64(1), history: math.MaxInt32, deadline: math.MaxInt32, updatesOnRequest: true}
	firstAppsDefaults  = workloadDefaults{selector: true, history: 2, updatesOnRequest: true}
)

// Annotations in which apps/v1 keeps values for which it has no field.
const (
	rollbackAnnotation   = "deprecated.deployment.rollback.to"
	generationAnnotation = "deprecated.daemonset.template.generation"
)

func (d workloadDefaults) common(o Object) {
	if !d.selector {
		return
	}
	labels := sub(sub(sub(sub2(o, "spec"), "template"), "metadata"), "labels")
	if len(labels) == 0 {
		return
	}
	if len(sub(sub2(o, "metadata"), "labels")) == 0 {
		must(o, "metadata")["labels"] = clone(labels)
	}
	preset(must(o, "spec"), "selector", Object{"matchLabels": clone(labels)})
}

// sub2 is sub, and never nil.
func sub2(o Object, field string) Object {
	if m := sub(o, field); m != nil {
		return m
	}
	return Object{}
}

func clone(o Object) Object {
	out := make(Object, len(o))
	for k, v := range o {
		out[k] = v
	}
	return out
}

func (d workloadDefaults) deployment(o Object) error {
	d.common(o)
	spec := must(o, "spec")
	if to := sub(spec, "rollbackTo"); to != nil {
		revision := to["revision"]
		if revision == nil {
			revision = 0
		}
		must(must(o, "metadata"), "annotations")[rollbackAnnotation] = fmt.Sprint(revision)
	}
	delete(spec, "rollbackTo")
	if d.history > 0 {
		preset(spec, "revisionHistoryLimit", d.history)
	}
	if d.deadline > 0 {
		preset(spec, "progressDeadlineSeconds", d.deadline)
	}
	if d.surge != nil {
		strategy := must(spec, "strategy")
		if kind := text(strategy, "type"); kind == "" || kind == "RollingUpdate" {
			rolling := must(strategy, "rollingUpdate")
			preset(rolling, "maxUnavailable", d.surge)
			preset(rolling, "maxSurge", d.surge)
		}
	}
	return nil
}

func deploymentDown(o Object) error {
	annotations := sub(sub2(o, "metadata"), "annotations")
	if revision, ok := annotations[rollbackAnnotation].(string); ok {
		n, err := strconv.ParseInt(revision, 10, 64)
		if err != nil {
			return fmt.Errorf("metadata.annotations[%s]: %w", rollbackAnnotation, err)
		}
		delete(annotations, rollbackAnnotation)
		must(o, "spec")["rollbackTo"] = Object{"revision": n}
	}
	return nil
}

func (d workloadDefaults) daemonSet(o Object) error {
	d.common(o)
	spec := must(o, "spec")
	if n, there := spec["templateGeneration"]; there && n != nil {
		must(must(o, "metadata"), "annotations")[generationAnnotation] = fmt.Sprint(n)
	}
	delete(spec, "templateGeneration")
	if d.updatesOnRequest {
		preset(must(spec, "updateStrategy"), "type", "OnDelete")
	}
	return nil
}

func daemonSetDown(o Object) error {
	annotations := sub(sub2(o, "metadata"), "annotations")
	if text, ok := annotations[generationAnnotation].(string); ok {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("metadata.annotations[%s]: %w", generationAnnotation, err)
		}
		delete(annotations, generationAnnotation)
		must(o, "spec")["templateGeneration"] = n
	}
	return nil
}

func (d workloadDefaults) replicaSet(o Object) error {
	d.common(o)
	return nil
}

func (d workloadDefaults) statefulSet(o Object) error {
	d.common(o)
	if d.updatesOnRequest {
		preset(must(must(o, "spec"), "updateStrategy"), "type", "OnDelete")
	}
	return nil
}
