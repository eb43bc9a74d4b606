package podspec

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// checker collects the faults of a spec. Paths are built only where
// something is wrong, or where a subtree has to know its place.
type checker struct {
	ofPod bool // the resources in question are those of a pod as a whole
	// labelValues means that choices of nodes have values that labels can have.
	labelValues bool
	o           Options
	errs        field.ErrorList
}

// add takes errors, as many as an answer contains: clients determine their number, and each takes hundreds of bytes.
func (c *checker) add(e ...*field.Error) {
	if len(c.errs) <= rules.MaxErrors {
		c.errs = append(c.errs, e...)
	}
}

func (c *checker) required(p *field.Path, detail string) { c.add(field.Required(p, detail)) }

func (c *checker) invalid(p *field.Path, value any, detail string) {
	c.add(field.Invalid(p, value, detail))
}

func (c *checker) forbidden(p *field.Path, detail string) { c.add(field.Forbidden(p, detail)) }

func (c *checker) duplicate(p *field.Path, value any) { c.add(field.Duplicate(p, value)) }

// requiredIf, forbiddenIf, invalidIf and duplicateIf report p.Child(child), or p if child is empty,
// when a condition holds. They build the path, and box the value, only then.
func (c *checker) requiredIf(missing bool, p *field.Path, child, detail string) {
	if missing {
		c.required(at(p, child), detail)
	}
}

// requiredThen is requiredIf for an empty value; it checks any other one.
func (c *checker) requiredThen(value string, p *field.Path, child string, check func(p *field.Path, child, value string)) {
	if value == "" {
		c.required(at(p, child), "")
		return
	}
	check(p, child, value)
}

func (c *checker) forbiddenIf(set bool, p *field.Path, child, detail string) {
	if set {
		c.forbidden(at(p, child), detail)
	}
}

func invalidIf[T any](c *checker, invalid bool, p *field.Path, child string, value T, detail string) {
	if invalid {
		c.invalid(at(p, child), value, detail)
	}
}

func duplicateIf[T any](c *checker, again bool, p *field.Path, child string, value T) {
	if again {
		c.duplicate(at(p, child), value)
	}
}

// messages reports each message about one value.
func (c *checker) messages(p *field.Path, value any, msgs []string) {
	for _, m := range msgs {
		c.invalid(p, value, m)
	}
}

// oneOf reports a value that is not in allowed, whose order is that of the message.
func oneOf[T ~string](c *checker, p *field.Path, child string, value T, allowed []T) bool {
	if slices.Contains(allowed, value) {
		return true
	}
	c.add(field.NotSupported(at(p, child), value, allowed))
	return false
}

// requiredOneOf is oneOf for a value that is required.
func requiredOneOf[T ~string](c *checker, p *field.Path, child string, value T, allowed []T) {
	c.requiredIf(value == "", p, child, "")
	if value != "" {
		oneOf(c, p, child, value, allowed)
	}
}

// sortedKeys lists a map's keys in order, so that messages are reproducible.
func sortedKeys[K ~string, V any](m map[K]V) []K {
	if len(m) == 0 {
		return nil
	}
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// nameSet is a set that costs nothing for the few names most specs have.
type nameSet struct {
	few  [8]string
	n    int
	many map[string]struct{}
}

func (s *nameSet) has(name string) bool {
	if s.many != nil {
		_, ok := s.many[name]
		return ok
	}
	for i := range s.n {
		if s.few[i] == name {
			return true
		}
	}
	return false
}

func (s *nameSet) add(name string) {
	if s.many == nil && s.n < len(s.few) {
		s.few[s.n] = name
		s.n++
		return
	}
	if s.many == nil {
		s.many = make(map[string]struct{}, 2*len(s.few))
		for _, f := range s.few {
			s.many[f] = struct{}{}
		}
	}
	s.many[name] = struct{}{}
}
