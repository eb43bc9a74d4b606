package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/sqlstore/archive/recreate"
)

// observed are annotations in which controllers record their observations. The live value is right.
var observed = []string{"deployment.kubernetes.io/revision", "control-plane.alpha.kubernetes.io/leader", "endpoints.kubernetes.io/last-change-trigger-time"}

// deleting are finalizers of a deletion that is being carried out. A restored object does not have them.
var deleting = []string{"foregroundDeletion", "orphan"}

func meta(obj Object) Object {
	m, _ := obj["metadata"].(Object)
	return m
}

// owners returns the owner references of an object. They are not copies.
func owners(obj Object) []Object {
	list, _ := meta(obj)["ownerReferences"].([]any)
	var refs []Object
	for _, r := range list {
		if ref, ok := r.(Object); ok {
			refs = append(refs, ref)
		}
	}
	return refs
}

// controller returns the owner reference of an object's controller; nil for none.
func controller(obj Object) Object {
	for _, ref := range owners(obj) {
		if ref["controller"] == true {
			return ref
		}
	}
	return nil
}

// fresh returns a past object ready to be created: without the fields that the server sets, and without the status if
// that is a subresource.
func fresh(past Object, ownStatus bool) Object {
	obj := runtime.DeepCopyJSON(past)
	recreate.Metadata(obj)
	if list, ok := meta(obj)["finalizers"].([]any); ok {
		list = slices.DeleteFunc(list, func(f any) bool { return slices.Contains(deleting, fmt.Sprint(f)) })
		if meta(obj)["finalizers"] = list; len(list) == 0 {
			delete(meta(obj), "finalizers")
		}
	}
	if ownStatus {
		delete(obj, "status")
	}
	if obj["kind"] == "Job" && obj["apiVersion"] == "batch/v1" {
		recreate.RemoveReferences("jobs.batch", obj)
	}
	return obj
}

// recreated returns a past object ready to be created, without references to UIDs that no longer exist.
func recreated(past Object, ownStatus bool) Object {
	obj := fresh(past, ownStatus)
	if obj["apiVersion"] != "v1" {
		return obj
	}
	switch obj["kind"] {
	case "PersistentVolumeClaim":
		// With these fields it would count as bound, to a volume that names another claim, and become lost.
		// It requests the same volume, and waits for it.
		notes, _ := meta(obj)["annotations"].(Object)
		delete(notes, "pv.kubernetes.io/bind-completed")
		delete(notes, "pv.kubernetes.io/bound-by-controller")
	case "PersistentVolume":
		// The volume is reserved for the claim of that name, whatever its UID now.
		recreate.RemoveReferences("persistentvolumes", obj)
	}
	return obj
}

// updated returns the live object's update to its past state.
func updated(past, live Object, ownStatus bool) Object {
	obj := fresh(past, ownStatus)
	for _, field := range []string{"uid", "resourceVersion"} {
		meta(obj)[field] = meta(live)[field]
	}
	keep(obj, live)
	return obj
}

// keep copies fields from the live object that people do not set.
func keep(obj, live Object) {
	now, _ := meta(live)["annotations"].(Object)
	then, _ := meta(obj)["annotations"].(Object)
	for _, name := range observed {
		value, has := now[name]
		switch {
		case !has:
			delete(then, name)
		case then == nil:
			then = Object{name: value}
			meta(obj)["annotations"] = then
		default:
			then[name] = value
		}
	}
	if then != nil && len(then) == 0 {
		delete(meta(obj), "annotations")
	}
	if obj["kind"] == "Job" && obj["apiVersion"] == "batch/v1" {
		keepAt(obj, live, "spec", "selector")
		keepAt(obj, live, "spec", "template", "metadata", "labels")
		keepAt(obj, live, "metadata", "labels")
	}
	if obj["kind"] == "Service" && obj["apiVersion"] == "v1" && meta(obj)["uid"] != nil {
		for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
			keepAt(obj, live, "spec", field) // an address cannot be changed
		}
	}
}

// keepAt copies one field from the live object, or deletes it if the live object has none.
func keepAt(obj, live Object, path ...string) {
	for _, key := range path[:len(path)-1] {
		obj, _ = obj[key].(Object)
		live, _ = live[key].(Object)
	}
	last := path[len(path)-1]
	if value, has := live[last]; has && obj != nil {
		obj[last] = value
	} else {
		delete(obj, last)
	}
}

// comparable returns a live object without the fields that may differ.
func comparable(live Object, ownStatus bool) Object {
	obj := runtime.DeepCopyJSON(live)
	recreate.Metadata(obj)
	if ownStatus {
		delete(obj, "status")
	}
	return obj
}

// maxFields limits the changed fields that a step names.
const maxFields = 6

// differing returns the paths of the first fields that differ between two objects, sorted.
func differing(a, b Object) []string {
	var list []string
	differ("", a, b, &list)
	slices.Sort(list)
	if more := len(list) - maxFields; more > 0 {
		list = append(list[:maxFields], fmt.Sprintf("and %d more", more))
	}
	return list
}

func differ(at string, a, b any, list *[]string) {
	x, isX := a.(Object)
	y, isY := b.(Object)
	if !isX || !isY {
		if !same(a, b) {
			*list = append(*list, strings.TrimPrefix(at, "."))
		}
		return
	}
	for key, value := range x {
		differ(at+"."+key, value, y[key], list)
	}
	for key, value := range y {
		if _, both := x[key]; !both {
			differ(at+"."+key, nil, value, list)
		}
	}
}

func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// size returns about how many bytes an object takes as JSON.
func size(obj Object) int {
	text, _ := json.Marshal(obj) // it was decoded from JSON
	return len(text)
}
