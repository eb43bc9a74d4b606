package jsonpatch

import (
	"strconv"
	"strings"
)

// find follows a path to the container of its target, and returns the key of the target. It returns nil if
// there is no such container.
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

// unescape undoes the escapes of paths (RFC 6901).
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// index parses an index into n elements.
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

// get returns a member or element of an opened node; a member that is not there is nil.
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

// put adds a member or an element, before the existing one.
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

// drop takes out a member or an element.
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
