package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema/descriptions"
)

// makeDefinitions puts descriptions into the definitions and packs them. The lines have the form of
// definitions.txt, but with the names that the documents use.
func makeDefinitions(v release.Version) ([]byte, error) {
	library, err := descriptions.Read(v)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	for name, schema := range undescribed(v) {
		described, err := describe(v, library, name, []byte(schema))
		if err != nil {
			return nil, fmt.Errorf("describing %s: %w", name, err)
		}
		if _, err := fmt.Fprintf(zw, "%s\t%s\n", packageName(name), described); err != nil {
			return nil, err
		}
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(out.Bytes()), nil
}

// describe inserts the descriptions of a type and of its fields where its definition has markers for them, and omits
// the fields and values that a release does not have.
func describe(v release.Version, library *descriptions.Library, name string, schema []byte) ([]byte, error) {
	var definition, properties map[string]json.RawMessage
	if err := json.Unmarshal(schema, &definition); err != nil {
		return nil, err
	}
	if err := setDescription(definition, library.Type(name)); err != nil {
		return nil, err
	}
	if definition["properties"] == nil {
		return json.Marshal(definition)
	}
	if err := json.Unmarshal(definition["properties"], &properties); err != nil {
		return nil, err
	}
	if err := leaveOut(definition, properties, typeOf(name).Lacks(v)); err != nil {
		return nil, err
	}
	for field, raw := range properties {
		var property map[string]json.RawMessage
		if err := json.Unmarshal(raw, &property); err != nil {
			return nil, err
		}
		values, err := setValues(property, library.LacksValues(name, field))
		if err != nil {
			return nil, err
		}
		if err := setDescription(property, library.Field(name, field, values)); err != nil {
			return nil, err
		}
		if properties[field], err = json.Marshal(property); err != nil {
			return nil, err
		}
	}
	var err error
	if definition["properties"], err = json.Marshal(properties); err != nil {
		return nil, err
	}
	return json.Marshal(definition)
}

// leaveOut drops fields of a definition.
func leaveOut(definition, properties map[string]json.RawMessage, fields []string) error {
	if len(fields) == 0 {
		return nil
	}
	for _, field := range fields {
		delete(properties, field)
	}
	if definition["required"] == nil {
		return nil
	}
	var required []string
	if err := json.Unmarshal(definition["required"], &required); err != nil {
		return err
	}
	required = slices.DeleteFunc(required, func(field string) bool { return slices.Contains(fields, field) })
	if len(required) == 0 {
		delete(definition, "required")
		return nil
	}
	var err error
	definition["required"], err = json.Marshal(required)
	return err
}

// setValues drops values of a schema or of the schema of its items, and returns those that remain in the
// schema itself.
func setValues(schema map[string]json.RawMessage, lacks []string) ([]string, error) {
	var values []string
	if enum := schema["enum"]; enum != nil {
		if err := json.Unmarshal(enum, &values); err != nil {
			return nil, err
		}
	}
	if len(lacks) == 0 {
		return values, nil
	}
	var err error
	if len(values) > 0 {
		values = slices.DeleteFunc(values, func(value string) bool { return slices.Contains(lacks, value) })
		schema["enum"], err = json.Marshal(values)
		return values, err
	}
	if schema["items"] == nil {
		return nil, nil
	}
	var items map[string]json.RawMessage
	if err := json.Unmarshal(schema["items"], &items); err != nil {
		return nil, err
	}
	if _, err := setValues(items, lacks); err != nil {
		return nil, err
	}
	schema["items"], err = json.Marshal(items)
	return nil, err
}

// setDescription fills in the description of a schema that has one.
func setDescription(schema map[string]json.RawMessage, text string) error {
	if schema["description"] == nil {
		return nil
	}
	if text == "" {
		delete(schema, "description")
		return nil
	}
	encoded, err := json.Marshal(text)
	schema["description"] = encoded
	return err
}

// unpackDefinitions unpacks the result of makeDefinitions. Its own result serves one document and is then
// dropped: it is not needed twice.
func unpackDefinitions(packed []byte) (definitions, error) {
	text, err := unzip(packed)
	if err != nil {
		return nil, err
	}
	defs := make(definitions, 600)
	for line := range bytes.Lines(text) {
		name, schema, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		if !ok {
			return nil, fmt.Errorf("definition without a schema: %.40q", line)
		}
		defs[string(name)] = schema
	}
	return defs, nil
}
