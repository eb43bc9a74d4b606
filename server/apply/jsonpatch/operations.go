package jsonpatch

import (
	"fmt"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// shift charges the elements that an insertion or removal moves.
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

// source returns the value that a move or a copy takes.
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
		text, err := v.write(nil, r.Budget, scan.MaxDepth)
		if err != nil {
			return err
		}
		if r.copied += len(text); r.copied > r.mostCopied {
			return fmt.Errorf("Unable to complete the copy, the accumulated size increase of copy is %d, exceeding the limit %d", r.copied, r.mostCopied)
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
		return failed(ErrTest, "testing value %s failed", path)
	}
	return nil
}
