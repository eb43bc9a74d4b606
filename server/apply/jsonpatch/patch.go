package jsonpatch

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/json/scan"
)

// mostCopied bounds how many bytes the operations of a patch of a document of n bytes may copy: each can double the
// document, and sixty of them are more than there is memory.
func mostCopied(n int) int { return 2 * max(budget.DefaultObject, n) }

// Patch is a JSON Patch (RFC 6902).
type Patch []operation

// operation is an operation of a patch, as decoded.
type operation map[string]*stdjson.RawMessage

// Decode reads a JSON Patch. Its errors are those of encoding/json, with the type names of a stock server.
func Decode(text []byte) (Patch, error) {
	var p Patch
	err := stdjson.Unmarshal(text, &p)
	if err != nil && !errors.As(err, new(*stdjson.SyntaxError)) {
		err = errors.New(typeNames.Replace(err.Error()))
	}
	return p, err
}

var typeNames = strings.NewReplacer("jsonpatch.operation", "jsonpatch.Operation")

// ErrTest: a test operation failed.
var ErrTest = errors.New("test failed")

var (
	errMissing = errors.New("missing value")
	errIndex   = errors.New("invalid index referenced")
)

// failed formats an error as the library does, with the failed operation.
func failed(err error, format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// Apply applies the operations to a document, which must be a JSON object. Errors are those of the budget, or
// of an operation that does not apply.
func (p Patch) Apply(document []byte, b *budget.Budget) ([]byte, error) {
	root, err := parse(document, b)
	if err != nil {
		return nil, err
	}
	if _, err := root.open(b); err != nil {
		return nil, err
	}
	r := run{Budget: b, root: root, mostCopied: mostCopied(len(document))}
	for _, op := range p {
		if err := b.Spend(1); err != nil {
			return nil, err
		}
		switch kind := op.kind(); kind {
		case "add":
			err = r.add(op)
		case "remove":
			err = r.remove(op)
		case "replace":
			err = r.replace(op)
		case "move":
			err = r.move(op)
		case "test":
			err = r.test(op)
		case "copy":
			err = r.copy(op)
		default:
			err = fmt.Errorf("Unexpected kind: %s", kind)
		}
		if err != nil {
			return nil, err
		}
	}
	return r.root.write(make([]byte, 0, len(document)+r.copied), b, scan.MaxDepth)
}

// run is the work on one document. Its methods are the operations.
type run struct {
	*budget.Budget
	root       *node
	copied     int // bytes that copies have added
	mostCopied int
}

// kind returns the name of an operation.
func (o operation) kind() string {
	kind, err := o.text("op", "")
	if err != nil {
		return "unknown"
	}
	return kind
}

// text reads a field of an operation that is a string.
func (o operation) text(field, missing string) (string, error) {
	raw := o[field]
	if raw == nil {
		return "", failed(errMissing, "%s", missing)
	}
	var s string
	err := stdjson.Unmarshal(*raw, &s)
	return s, err
}

func (o operation) path() (string, error) { return o.text("path", "operation missing path field") }
func (o operation) from() (string, error) { return o.text("from", "operation, missing from field") }

// value returns the value of an operation; ok is false where it has none. A null is a node
// without text.
func (r *run) value(o operation) (n *node, ok bool, err error) {
	raw, ok := o["value"]
	if !ok {
		return nil, false, nil
	}
	if raw == nil {
		return &node{}, true, nil
	}
	n, err = parse(*raw, r.Budget)
	return n, true, err
}
