package operators

import "maps"

// scalar is a type without fields of its own.
type scalar struct {
	of     tree
	sample any
}

// schema returns a copy: a field adds its description and its default.
func (s scalar) schema() tree { return maps.Clone(s.of) }

// matching returns a string with a pattern.
func matching(pattern, sample string) scalar {
	return scalar{tree{"type": "string", "pattern": pattern}, sample}
}

func oneOf(values ...any) scalar {
	return scalar{tree{"type": "string", "enum": values}, values[0]}
}

var scalars = map[string]scalar{
	"string": {tree{"type": "string"}, "text"},
	"int":    {tree{"type": "integer", "format": "int32"}, 1},
	"number": {tree{"type": "number"}, 1},
	"bool":   {tree{"type": "boolean"}, true},
	"time":   {tree{"type": "string", "format": "date-time"}, "2026-01-02T03:04:05Z"},
	"any":    {tree{"type": "object", "x-kubernetes-preserve-unknown-fields": true}, tree{"any": "thing"}},
	"labels": {tree{"type": "object", "additionalProperties": tree{"type": "string"}}, tree{"app": "web"}},
	"name": {tree{"type": "string", "minLength": 1, "maxLength": 253,
		"pattern": `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`}, "some-name"},
	"stringList": {tree{"type": "array", "items": tree{"type": "string"}}, []any{"text"}},
	"portNumber": {tree{"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535}, 8080},
	"intstr":     {tree{"x-kubernetes-int-or-string": true, "anyOf": []any{tree{"type": "integer"}, tree{"type": "string"}}}, 8080},
	"quantity": {tree{"x-kubernetes-int-or-string": true, "anyOf": []any{tree{"type": "integer"}, tree{"type": "string"}},
		"pattern": `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`}, "1Gi"},
	"duration":        matching(`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`, "10m"),
	"listenerName":    matching(`^[a-z0-9]{1,11}$`, "plain"),
	"conditionType":   matching(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`, "Ready"),
	"conditionStatus": oneOf("True", "False", "Unknown"),
	"protocol":        oneOf("TCP", "UDP", "SCTP"),
	"usage":           oneOf("digital signature", "key encipherment", "server auth", "client auth", "cert sign"),
	"action":          oneOf("ALLOW", "DENY", "AUDIT", "CUSTOM"),
	"deletion":        oneOf("Delete", "Orphan"),
	"relabelAction":   oneOf("replace", "keep", "drop", "hashmod", "labelmap", "labeldrop", "labelkeep"),
}
