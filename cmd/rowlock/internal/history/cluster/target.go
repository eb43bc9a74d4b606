package cluster

import (
	"fmt"
	"strings"
)

// Target names one object. It need not exist.
type Target struct {
	Resource  *Resource
	Namespace string // "" for cluster-scoped objects
	Name      string
}

// String returns the object's name in kubectl's notation: deployment.apps/web.
func (t Target) String() string { return t.Resource.Shown() + "/" + t.Name }

// Where is String with the namespace.
func (t Target) Where() string {
	if t.Namespace == "" {
		return t.String()
	}
	return t.String() + " in namespace " + t.Namespace
}

// Path returns the path of the object, or of a subresource.
func (t Target) Path(sub ...string) string { return t.Resource.Path(t.Namespace, t.Name, sub...) }

// Target returns an object of a resource, in the namespace if it is of one.
func (r *Resource) Target(namespace, name string) Target {
	if !r.Namespaced {
		namespace = ""
	}
	return Target{Resource: r, Namespace: namespace, Name: name}
}

// Names are parsed arguments, before discovery: types, and the names of objects of these types.
type Names struct {
	words []string // types; with names, one for each name
	names []string
}

// ParseNames reads TYPE/NAME..., TYPE NAME..., or TYPE[,TYPE...] alone.
func ParseNames(args []string) (Names, error) {
	var n Names
	if len(args) == 0 {
		return n, nil
	}
	if !strings.Contains(args[0], "/") {
		types := strings.Split(args[0], ",")
		for _, word := range types {
			if word == "" {
				return n, fmt.Errorf("%q: a type is missing before or after a comma", args[0])
			}
		}
		if len(args) == 1 {
			n.words = types
			return n, nil
		}
		if len(types) > 1 {
			return n, fmt.Errorf("%q: give one type followed by names, or write TYPE/NAME for each object", args[0])
		}
	}
	word := args[0]
	if strings.Contains(word, "/") {
		word = ""
	} else {
		args = args[1:]
	}
	for _, arg := range args {
		kind, name, slash := strings.Cut(arg, "/")
		switch {
		case slash && word != "", !slash && word == "":
			return n, fmt.Errorf("%q: write TYPE/NAME for each object, or one TYPE followed by names", arg)
		case !slash:
			kind, name = word, arg
		}
		if kind == "" || name == "" || strings.Contains(name, "/") {
			return n, fmt.Errorf("%q: want TYPE/NAME", arg)
		}
		n.words, n.names = append(n.words, kind), append(n.names, name)
	}
	return n, nil
}

// IsSet reports whether there were arguments.
func (n Names) IsSet() bool { return len(n.words) > 0 }

// Types returns the resources if the arguments name no objects; otherwise nil.
func (n Names) Types(all *Resources) ([]*Resource, error) {
	if len(n.names) > 0 {
		return nil, nil
	}
	var types []*Resource
	for _, word := range n.words {
		r, err := all.Find(word)
		if err != nil {
			return nil, err
		}
		types = append(types, r)
	}
	return types, nil
}

// Targets returns the named objects; none if the arguments are types.
func (n Names) Targets(all *Resources, namespace string) ([]Target, error) {
	var targets []Target
	for i, name := range n.names {
		r, err := all.Find(n.words[i])
		if err != nil {
			return nil, err
		}
		targets = append(targets, r.Target(namespace, name))
	}
	return targets, nil
}
