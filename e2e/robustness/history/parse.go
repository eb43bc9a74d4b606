package history

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// ParseObject reads an object as the API or the table has it. The table keeps no version; pass that of its row.
func ParseObject(data []byte, version uint64) (Item, error) {
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return Item{}, fmt.Errorf("an object %.200q: %w", data, err)
	}
	return FromTree(tree, version)
}

// CustomGroup is the group of the custom resources that the traffic writes.
const CustomGroup = "robust.rowlock.dev"

// Parser reads objects, and keeps the last ones with their bytes: the same bytes in another answer or event are the same object.
// It is safe for concurrent use.
type Parser struct {
	mu       sync.Mutex
	now, was map[[sha256.Size]byte]*Item
}

// mostKept bounds each of the two maps of a Parser.
const mostKept = 20_000

// Parse reads an object as the API has it. The caller must not change it.
func (p *Parser) Parse(data []byte) (*Item, error) {
	sum := sha256.Sum256(data)
	p.mu.Lock()
	item := p.now[sum]
	if item == nil {
		item = p.was[sum]
	}
	p.mu.Unlock()
	if item != nil {
		return item, nil
	}
	read, err := ParseObject(data, 0)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil || len(p.now) >= mostKept {
		p.was, p.now = p.now, map[[sha256.Size]byte]*Item{}
	}
	p.now[sum] = &read
	return &read, nil
}

// Shift is the kind of the custom resources that a webhook converts. The second version has in Shifted what the first has in values.
const (
	Shift   = "Shift"
	Shifted = "shifted"
)

// FromTree reads an object as a tree, which it changes. A Shift has the same hash in each version.
func FromTree(tree map[string]any, version uint64) (Item, error) {
	metadata, _ := tree["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	if text, ok := metadata["resourceVersion"].(string); ok && version == 0 {
		var err error
		if version, err = strconv.ParseUint(text, 10, 64); err != nil {
			return Item{}, fmt.Errorf("the version of %s: %w", name, err)
		}
	}
	served, _ := tree["apiVersion"].(string)
	if !strings.HasPrefix(served, CustomGroup+"/") {
		served = ""
	}
	delete(metadata, "resourceVersion")
	if spec, ok := tree["spec"].(map[string]any); ok && tree["kind"] == Shift && served == CustomGroup+"/v2" {
		values, ok := spec["values"]
		delete(spec, "values")
		if shifted, ok := spec[Shifted]; ok {
			spec["values"] = shifted
			delete(spec, Shifted)
		}
		if ok { // it was not converted
			spec[Shifted] = values
		}
	}
	delete(tree, "kind")
	delete(tree, "apiVersion")
	sameInReleases(tree)
	labels, _ := metadata["labels"].(map[string]any)
	item := Item{Namespace: namespace, Name: name, Served: served, State: State{Version: version, On: labels["on"] == "yes", Fields: fields(tree)}}
	item.State.UID, _ = metadata["uid"].(string)
	if spec, ok := tree["spec"].(map[string]any); ok {
		item.State.Node, _ = spec["nodeName"].(string)
		item.State.Side = spec["side"] == "yes"
	}
	if status, ok := tree["status"].(map[string]any); ok {
		item.State.Phase, _ = status["phase"].(string)
	}
	item.State.Made, _ = metadata["creationTimestamp"].(string)
	finalizers, _ := metadata["finalizers"].([]any)
	item.State.Held, item.State.Going = len(finalizers) > 0, metadata["deletionTimestamp"] != nil
	if generation, ok := metadata["generation"].(float64); ok {
		item.State.Generation = int64(generation)
	}
	var err error
	if item.State.Hash, err = hash(tree); err == nil {
		item.State.Meta, err = hash(map[string]any{"metadata": metadata})
	}
	if err != nil {
		return Item{}, fmt.Errorf("%s: %w", name, err)
	}
	return item, nil
}

// sameInReleases takes away what servers of different releases show differently of the same row: a template's time of creation, which is
// null in rows of the oldest, and the generation that a condition of a Pod is of, which that one does not show.
func sameInReleases(tree map[string]any) {
	spec, _ := tree["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	if metadata, ok := template["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	status, _ := tree["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		delete(condition, "observedGeneration")
	}
}

func hash(tree map[string]any) (string, error) {
	text, err := json.Marshal(tree)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:10]), nil
}

// Replicas is the field that a write of a Scale sets.
const Replicas = "replicas"

// ReplicasID returns the ID of the operation that set a number of replicas: each sets the number in its own ID.
func ReplicasID(replicas int64) string { return idPrefix + strconv.FormatInt(replicas, 36) }

// ReplicasOf returns the number of replicas that an operation sets.
func ReplicasOf(id string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(id, idPrefix), 36, 32)
	if err != nil {
		return 0, fmt.Errorf("the number of operation %q: %w", id, err)
	}
	return n, nil
}

// fields are the fields that the writers of the traffic set: data of a ConfigMap, the holder of a Lease, the values of a
// custom resource's spec and status, entries of its list, numbers of replicas, annotations of a Pod, and messages of the conditions of Pods and Deployments; and that a
// Deployment is paused, which none may set.
func fields(tree map[string]any) map[string]string {
	found := map[string]string{}
	texts := func(prefix string, m any) {
		all, _ := m.(map[string]any)
		for k, v := range all {
			if text, ok := v.(string); ok && k != "pad" {
				found[prefix+k] = text
			}
		}
	}
	metadata, _ := tree["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for name, value := range annotations {
		if field, ok := strings.CutPrefix(name, "robust.rowlock.dev/"); ok {
			found[field], _ = value.(string)
		}
	}
	texts("", tree["data"])
	spec, _ := tree["spec"].(map[string]any)
	texts("", spec["values"])
	log, _ := spec["log"].([]any)
	for _, entry := range log {
		if id, ok := entry.(string); ok && found[id] == "" {
			found[id] = id
		} else {
			found[id] = id + " twice"
		}
	}
	if paused, ok := spec["paused"].(bool); ok && paused {
		found["spec.paused"] = "true"
	}
	if holder, ok := spec["holderIdentity"].(string); ok {
		found["holder"] = holder
	}
	if replicas, ok := spec["replicas"].(float64); ok && replicas > 0 {
		found[Replicas] = ReplicasID(int64(replicas))
	}
	status, _ := tree["status"].(map[string]any)
	texts("status.", status["values"])
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		kind, _ := condition["type"].(string)
		if message, ok := condition["message"].(string); ok {
			found["status."+kind] = message
		}
	}
	return found
}
