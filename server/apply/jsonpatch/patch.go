package jsonpatch

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowlock/rowlock/codecs/budget"
)

// MaxCopied bounds what the operations of one patch may copy: each can double the document,
// and sixty of them are more than there is memory.
const MaxCopied = 3 << 20

// Patch is a JSON Patch (RFC 6902).
type Patch []operation

type operation map[string]*stdjson.RawMessage

// Decode reads a JSON Patch. Its errors are those of encoding/json, with the names of types
// that clients know from other servers.
func Decode(text []byte) (Patch, error) {
	var p Patch
	err := stdjson.Unmarshal(text, &p)
	if err != nil && !errors.As(err, new(*stdjson.SyntaxError)) {
		err = errors.New(typeNames.Replace(err.Error()))
	}
	return p, err
}

var typeNames = strings.NewReplacer("jsonpatch.operation", "jsonpatch.Operation")

var (
	errTest    = errors.New("test failed")
	errMissing = errors.New("missing value")
	errIndex   = errors.New("invalid index referenced")
)

// failed words an error as the library does: what was done comes first.
func failed(err error, format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// Apply makes the document that the operations make of this one, which must be a JSON
// object. Errors are those of the budget, or say why an operation does not fit.
func (p Patch) Apply(document []byte, b *budget.Budget) ([]byte, error) {
	root, err := parse(document, b)
	if err != nil {
		return nil, err
	}
	if _, err := root.open(b); err != nil {
		return nil, err
	}
	r := run{Budget: b, root: root}
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
	return r.root.write(make([]byte, 0, len(document)+r.copied), b)
}

// run is the work on one document.
type run struct {
	*budget.Budget
	root   *node
	copied int
}

func (o operation) kind() string {
	kind, err := o.text("op", "")
	if err != nil {
		return "unknown"
	}
	return kind
}

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

// value is the value of an operation; ok is false where it has none. A null is a node
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

// find follows a path to the container of what it leads to, and gives the key of that. It
// is nil where there is no such container.
func (r *run) find(path string) (container *node, key string, err error) {
	_, rest, slashed := strings.Cut(path, "/")
	if !slashed {
		return nil, "", nil
	}
	at := r.root
	for {
		part, more, deeper := strings.Cut(rest, "/")
		key = unescape.Replace(part)
		if !deeper {
			return at, key, nil
		}
		rest = more
		if err := r.Spend(1); err != nil {
			return nil, "", err
		}
		next, err := at.get(key)
		if err != nil || next == nil {
			return nil, "", nil
		}
		f, err := next.open(r.Budget)
		if err != nil {
			return nil, "", err
		}
		if f == unopened {
			return nil, "", nil
		}
		at = next
	}
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// index reads the index of one of n elements.
func index(key string, n int) (int, error) {
	i, err := strconv.Atoi(key)
	if err != nil {
		return 0, err
	}
	if i >= n || i < -n {
		return 0, failed(errIndex, "Unable to access invalid index: %d", i)
	}
	if i < 0 {
		i += n
	}
	return i, nil
}

// get is a member or element of an opened node; a member that is not there is nil.
func (n *node) get(key string) (*node, error) {
	if n.opened == object {
		return n.members[key], nil
	}
	i, err := index(key, n.elements.n)
	if err != nil {
		return nil, err
	}
	return n.elements.get(i), nil
}

func (n *node) put(key string, v *node) error {
	if n.opened == object {
		n.members[key] = v
		return nil
	}
	if key == "-" {
		n.elements.push(v)
		return nil
	}
	if _, err := strconv.Atoi(key); err != nil {
		return failed(err, "value was not a proper array index: '%s'", key)
	}
	i, err := index(key, n.elements.n+1)
	if err != nil {
		return err
	}
	n.elements.insert(i, v)
	return nil
}

func (n *node) drop(key string) error {
	if n.opened == object {
		if _, ok := n.members[key]; !ok {
			return failed(errMissing, "Unable to remove nonexistent key: %s", key)
		}
		delete(n.members, key)
		return nil
	}
	i, err := index(key, n.elements.n)
	if err != nil {
		return err
	}
	n.elements.remove(i)
	return nil
}

// shift pays for what putting in and taking out moves.
func (r *run) shift(n *node) error { return r.Spend(len(n.elements.blocks) / 16) }

func (r *run) add(o operation) error {
	path, err := o.path()
	if err != nil {
		return failed(errMissing, "add operation failed to decode path")
	}
	in, key, err := r.find(path)
	if err != nil {
		return err
	}
	if in == nil {
		return failed(errMissing, "add operation does not apply: doc is missing path: \"%s\"", path)
	}
	v, _, err := r.value(o)
	if err != nil {
		return err
	}
	if err := r.shift(in); err != nil {
		return err
	}
	if err := in.put(key, v); err != nil {
		return failed(err, "error in add for path: '%s'", path)
	}
	return nil
}

func (r *run) remove(o operation) error {
	path, err := o.path()
	if err != nil {
		return failed(errMissing, "remove operation failed to decode path")
	}
	in, key, err := r.find(path)
	if err != nil {
		return err
	}
	if in == nil {
		return failed(errMissing, "remove operation does not apply: doc is missing path: \"%s\"", path)
	}
	if err := r.shift(in); err != nil {
		return err
	}
	if err := in.drop(key); err != nil {
		return failed(err, "error in remove for path: '%s'", path)
	}
	return nil
}

func (r *run) replace(o operation) error {
	path, err := o.path()
	if err != nil {
		return failed(err, "replace operation failed to decode path")
	}
	v, given, err := r.value(o)
	if err != nil {
		return err
	}
	if path == "" {
		if !given {
			return failed(errMissing, "replace operation without a value")
		}
		f, err := v.open(r.Budget)
		if f != unopened && err == nil {
			r.root = v
		}
		return err // anything else is passed over
	}
	in, key, err := r.find(path)
	if err != nil {
		return err
	}
	if in == nil {
		return failed(errMissing, "replace operation does not apply: doc is missing path: %s", path)
	}
	if _, err := in.get(key); err != nil {
		return failed(errMissing, "replace operation does not apply: doc is missing key: %s", path)
	}
	if in.opened == object {
		in.members[key] = v
		return nil
	}
	i, err := index(key, in.elements.n)
	if err == nil {
		in.elements.set(i, v)
	}
	return err
}

// source finds what a move or a copy takes.
func (r *run) source(o operation, kind string) (in *node, key string, v *node, err error) {
	from, err := o.from()
	if err != nil {
		return nil, "", nil, failed(err, "%s operation failed to decode from", kind)
	}
	if in, key, err = r.find(from); err != nil {
		return nil, "", nil, err
	}
	if in == nil {
		return nil, "", nil, failed(errMissing, "%s operation does not apply: doc is missing from path: %s", kind, from)
	}
	if v, err = in.get(key); err != nil && kind == "copy" {
		return nil, "", nil, failed(err, "error in copy for from: '%s'", from)
	} else if err != nil {
		return nil, "", nil, failed(err, "error in %s for path: '%s'", kind, key)
	}
	return in, key, v, nil
}

// destination finds where a move or a copy puts it.
func (r *run) destination(o operation, kind string) (in *node, key, path string, err error) {
	if path, err = o.path(); err != nil && kind == "copy" {
		return nil, "", "", failed(errMissing, "copy operation failed to decode path")
	} else if err != nil {
		return nil, "", "", failed(err, "%s operation failed to decode path", kind)
	}
	if in, key, err = r.find(path); err == nil && in == nil {
		err = failed(errMissing, "%s operation does not apply: doc is missing destination path: %s", kind, path)
	}
	return in, key, path, err
}

func (r *run) move(o operation) error {
	in, key, v, err := r.source(o, "move")
	if err != nil {
		return err
	}
	if err := r.shift(in); err != nil {
		return err
	}
	if err := in.drop(key); err != nil {
		return failed(err, "error in move for path: '%s'", key)
	}
	to, key, path, err := r.destination(o, "move")
	if err != nil {
		return err
	}
	if err := r.shift(to); err != nil {
		return err
	}
	if err := to.put(key, v); err != nil {
		return failed(err, "error in move for path: '%s'", path)
	}
	return nil
}

func (r *run) copy(o operation) error {
	_, _, v, err := r.source(o, "copy")
	if err != nil {
		return err
	}
	to, key, _, err := r.destination(o, "copy")
	if err != nil {
		return err
	}
	if v != nil {
		text, err := v.write(nil, r.Budget)
		if err != nil {
			return err
		}
		if r.copied += len(text); r.copied > MaxCopied {
			return fmt.Errorf("Unable to complete the copy, the accumulated size increase of copy is %d, exceeding the limit %d", r.copied, MaxCopied)
		}
		if v, err = parse(text, r.Budget); err != nil {
			return err
		}
	}
	if err := r.shift(to); err != nil {
		return err
	}
	if err := to.put(key, v); err != nil {
		return failed(err, "error while adding value during copy")
	}
	return nil
}

func (r *run) test(o operation) error {
	path, err := o.path()
	if err != nil {
		return failed(err, "test operation failed to decode path")
	}
	have := r.root
	if path != "" {
		in, key, err := r.find(path)
		if err != nil {
			return err
		}
		if in == nil {
			return failed(errMissing, "test operation does not apply: is missing path: %s", path)
		}
		if have, err = in.get(key); err != nil {
			return failed(err, "error in test for path: '%s'", path)
		}
	}
	want, given, err := r.value(o)
	if err != nil {
		return err
	}
	same := given && want.src == nil && (have == nil || have.src == nil)
	if given && have != nil && want.src != nil {
		if same, err = r.equal(have, want); err != nil {
			return err
		}
	}
	if !same {
		return failed(errTest, "testing value %s failed", path)
	}
	return nil
}

// equal compares two values. Numbers are compared as they are written.
func (r *run) equal(a, b *node) (bool, error) {
	if a == nil || b == nil {
		return a == nil && b == nil, nil
	}
	if err := r.Spend(1); err != nil {
		return false, err
	}
	f, err := a.open(r.Budget)
	if err != nil {
		return false, err
	}
	g, err := b.open(r.Budget)
	if err != nil || f != g {
		return false, err
	}
	switch f {
	case object:
		if len(a.members) != len(b.members) {
			return false, nil
		}
		for key, v := range a.members {
			w, ok := b.members[key]
			if !ok {
				return false, nil
			}
			if same, err := r.equal(v, w); err != nil || !same {
				return false, err
			}
		}
		return true, nil
	case array:
		if a.elements.n != b.elements.n {
			return false, nil
		}
		at, left := 0, b.elements.blocks
		same := true
		err := a.elements.all(func(_ int, v *node) error {
			for at == len(left[0]) {
				at, left = 0, left[1:]
			}
			one, err := r.equal(v, left[0][at])
			at++
			if err == nil && !one {
				same, err = false, errTest
			}
			return err
		})
		if !same {
			err = nil
		}
		return same, err
	}
	return a.compact() == b.compact(), nil
}
