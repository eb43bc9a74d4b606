package schema

import (
	"encoding/json"

	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema/gnostic"
)

// DefinitionText returns the file of definitions.
func DefinitionText() string { return embedded(packedDefinitions) }

// Undescribed yields the lines of the file, by the names that documents use.
func Undescribed(yield func(name, schema string) bool) {
	for name, schema := range undescribed(release.Default) {
		if !yield(packageName(name), schema) {
			return
		}
	}
}

// Made has the definitions in all forms made so far, compressed.
func (d *Documents) Made() []byte {
	if d.made == nil {
		return nil
	}
	return d.made.packed
}

// Whole returns the text of a document of version 3, made with all definitions whether it needs them or not.
func (d *Documents) Whole(key string) ([]byte, error) {
	now := d.state(wanted{key: key})
	b, err := d.newBuilder(&now)
	if err != nil {
		return nil, err
	}
	doc, err := b.openAPI3(key)
	if err != nil {
		return nil, err
	}
	return unzip(doc.packed)
}

// Outline writes OpenAPI 2 of a custom kind, from its stored schema, as JSON and in protobuf; nothing for one
// without an outline.
func Outline(text []byte) (asJSON, wire []byte) {
	o := newOutline(text)
	if o == nil {
		return nil, nil
	}
	return o.appendJSON(nil, testMarks()), o.appendWire(nil, testMarks())
}

// Rewritten returns the output of Outline, made from OpenAPI 3.
func Rewritten(version3 []byte) (asJSON, wire []byte, err error) {
	for _, m := range []struct {
		name  string
		value []byte
	}{{gvkExtension, testMarks().kinds}, {selectableExtension, testMarks().selectable}} {
		if version3, err = extend(version3, m.name, json.RawMessage(m.value)); err != nil {
			return nil, nil, err
		}
	}
	var node any
	if err := json.Unmarshal(version3, &node); err != nil {
		return nil, nil, err
	}
	if asJSON, err = json.Marshal(swaggerOfCustom(node)); err != nil {
		return nil, nil, err
	}
	wire, err = gnostic.EncodeSwaggerSchema(asJSON)
	return asJSON, wire, err
}

func testMarks() rootMarks {
	return rootMarks{kinds: []byte(`[{"group":"example.com","kind":"Lamp","version":"v1"}]`), selectable: []byte(`[{"fieldPath":".spec.n"}]`)}
}

// Sweep drops texts that have not been requested for a while, and returns how many remain.
func (d *Documents) Sweep() int { return d.sweep() }

// Large sets how many bytes a form of version 2 has that is not kept for long.
func (d *Documents) Large(bytes int) { d.large2 = bytes }

// Kept returns how many bytes the documents of custom kinds take.
func (d *Documents) Kept() (n int) {
	for _, doc := range d.documents {
		if d.customs(doc.resources) {
			n += len(doc.packed)
		}
	}
	for _, p := range d.swaggerParts {
		for _, one := range []*piece{p.paths, p.schemas, p.wire} {
			if one != nil {
				n += len(one.packed)
			}
		}
	}
	return n
}

// MostWaiters bounds the requests that wait for documents.
const MostWaiters = maxWaiters

// Remembered is of how many documents of version 3 something is kept, be it a tag.
func (d *Documents) Remembered() int { return len(d.documents) }

// Waiting returns how many do.
func (d *Documents) Waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiters + len(d.waiting) + len(d.making)
}
