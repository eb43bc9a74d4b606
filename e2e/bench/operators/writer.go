package operators

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

type tree = map[string]any

// writer makes the schema of one version.
type writer struct {
	number  uint64 // of the definition
	release int    // of the shared shapes
	own     string // the family
	leaves  int    // percentage of the fields of a spec that are left out
	age     int    // number of newer versions
	inside  []string
}

// maxDepth is the depth at which recursive shapes end: a field there accepts any value.
const maxDepth = 12

// leftOut has percentages: of the fields of a spec that the kinds of a family omit, and of those that an
// older version omits as well: operators have small kinds as well as large ones.
var leftOut = []int{10, 60, 80, 90}

const leftOutByAge = 5

// root returns the schema of a version, and a valid spec.
func (w *writer) root(f *family, kind string) (schema, spec tree) {
	fields, spec := w.fields(f.spec, true)
	specSchema := object(fields, w.text(kind, "spec", 2))
	var rules []any
	for i, rule := range f.rules {
		rules = append(rules, tree{"rule": rule, "message": w.text("rule", strconv.Itoa(i), 1)})
	}
	if rules != nil {
		specSchema["x-kubernetes-validations"] = rules
	}
	status, _ := w.fields(f.status, false)
	return tree{
		"type": "object", "description": w.text(kind, "", 3), "required": []string{"spec"},
		"properties": tree{
			"apiVersion": tree{"type": "string", "description": w.text("object", "apiVersion", 2)},
			"kind":       tree{"type": "string", "description": w.text("object", "kind", 2)},
			"metadata":   tree{"type": "object"},
			"spec":       specSchema,
			"status":     object(status, w.text(kind, "status", 2)),
		},
	}, spec
}

// version returns one entry of a definition's versions.
func (f *family) version(name string, storage bool, schema tree) tree {
	columns := []any{}
	for i, path := range f.columns {
		columns = append(columns, tree{"name": fmt.Sprintf("Column %d", i+1), "type": "string", "jsonPath": path, "priority": i / 2})
	}
	sub := tree{"status": tree{}}
	if f.scale {
		sub["scale"] = tree{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
	}
	return tree{
		"name": name, "served": true, "storage": storage, "schema": tree{"openAPIV3Schema": schema}, "subresources": sub,
		"additionalPrinterColumns": append(columns, tree{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}),
	}
}

func object(fields fieldSet, description string) tree {
	out := tree{"type": "object", "properties": fields.properties, "description": description}
	if len(fields.required) > 0 {
		out["required"] = fields.required
	}
	return out
}

type fieldSet struct {
	properties tree
	required   []string
}

// fields makes the fields of a line of shapes. It leaves out some fields of the spec of a family.
func (w *writer) fields(line string, own bool) (out fieldSet, sample tree) {
	out.properties, sample = tree{}, tree{}
	for _, word := range strings.Fields(line) {
		name, typ, found := strings.Cut(word, ":")
		if !found {
			if own && w.leaveOut(word) {
				continue
			}
			more, below := w.fields(shapes[word], false)
			for name, schema := range more.properties {
				out.properties[name] = schema
			}
			out.required = append(out.required, more.required...)
			for name, v := range below {
				sample[name] = v
			}
			continue
		}
		typ, value, defaulted := strings.Cut(typ, "=")
		typ, required := strings.CutSuffix(typ, "!")
		if own && !required && !defaulted && w.leaveOut(name) {
			continue
		}
		schema, v := w.typed(typ)
		schema["description"] = w.text(w.where(own), name, 1+len(name)%3)
		if defaulted {
			schema["default"] = defaultOf(schema, value)
		}
		out.properties[name] = schema
		if required {
			out.required = append(out.required, name)
			sample[name] = v
		}
	}
	return out, sample
}

// named are fields that rules and paths of families refer to. They are never left out.
var named = []string{"replicas", "renewBefore", "duration", "dnsNames", "shards", "selector", "targetRefs", "listeners",
	"minSyncReplicas", "maxSyncReplicas", "minReplicaCount", "maxReplicaCount"}

// leaveOut decides by the definition and the field: a newer version has all fields of an older one.
func (w *writer) leaveOut(field string) bool {
	h := fnv.New64a()
	fmt.Fprint(h, w.number, "/", field)
	return !slices.Contains(named, field) && int(h.Sum64()%100) < w.leaves+leftOutByAge*w.age
}

func (w *writer) where(own bool) string {
	if own {
		return w.own
	}
	if len(w.inside) > 0 {
		return w.inside[len(w.inside)-1]
	}
	return "shared"
}

func defaultOf(schema tree, value string) any {
	switch schema["type"] {
	case "integer":
		n, _ := strconv.Atoi(value) // the table is ours
		return n
	case "boolean":
		return value == "true"
	}
	return value
}

// typed returns the schema of a type, and a value.
func (w *writer) typed(typ string) (schema tree, sample any) {
	if rest, ok := strings.CutPrefix(typ, "[]"); ok {
		of, key, keyed := strings.Cut(rest, "@")
		items, v := w.typed(of)
		out := tree{"type": "array", "items": items}
		if keyed {
			out["x-kubernetes-list-type"], out["x-kubernetes-list-map-keys"] = "map", []string{key}
			items["required"] = withKey(items["required"], key)
		}
		return out, []any{v}
	}
	if of, ok := strings.CutPrefix(typ, "{}"); ok {
		values, v := w.typed(of)
		return tree{"type": "object", "additionalProperties": values}, tree{"key": v}
	}
	if of, ok := scalars[typ]; ok {
		return of.schema(), of.sample
	}
	line, ok := shapes[typ]
	if !ok {
		panic("operators: no shape " + typ)
	}
	if len(w.inside) >= maxDepth || slices.Contains(w.inside, typ) {
		return tree{"type": "object", "x-kubernetes-preserve-unknown-fields": true}, tree{}
	}
	w.inside = append(w.inside, typ)
	fields, v := w.fields(line, false)
	w.inside = w.inside[:len(w.inside)-1]
	return object(fields, ""), v
}

func withKey(required any, key string) []string {
	list, _ := required.([]string)
	if slices.Contains(list, key) {
		return list
	}
	return append(list, key)
}

// words are the words of descriptions.
var words = strings.Fields(`the a of this which field object controller value when set that is used for to be if not name cluster and or must may one all
are resource default only operator will by with pods namespace list each has have been request response version given empty reference describes how long
before after new state certificate backup route match selector labels container volume storage key secret policy interval seconds number maximum minimum
ignored otherwise unless same other created deleted updated restart example optional required allowed see also more than less it its on at from in`)

// text describes a field of a shape in some sentences: the same for all operators that share a
// release.
func (w *writer) text(shape, field string, sentences int) string {
	h := fnv.New64a()
	fmt.Fprint(h, shape, "/", field, "/", w.release)
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	var b strings.Builder
	for range sentences {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(field + " " + words[r.IntN(len(words))])
		for range 6 + r.IntN(12) {
			b.WriteString(" " + words[r.IntN(len(words))])
		}
		b.WriteByte('.')
	}
	return b.String()
}
