package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// Object is one object as the server sent it, with its kind and version added.
type Object struct {
	Resource  Resource
	Namespace string // "" for cluster scope
	Name      string
	UID       string
	Version   string // resourceVersion
	JSON      []byte // valid until the next object
}

// head holds the type and the identity of a listed object.
type head struct {
	apiVersion, kind              string
	name, namespace, uid, version string
}

// item makes an Object of an item of a list, whose kind and version may be missing. raw is valid JSON.
func item(r Resource, raw []byte) (Object, error) {
	malformed := func(what string, err error) (Object, error) {
		return Object{}, &MalformedError{Path: r.Path(""), What: what, Err: err}
	}
	if len(raw) == 0 || raw[0] != '{' {
		return malformed("an item is no object", nil)
	}
	h, err := readHead(raw)
	if err != nil {
		return malformed("an item", err)
	}
	if err := CheckNames(h.namespace, h.name); err != nil {
		return malformed("an item", err)
	}
	switch {
	case (h.namespace != "") != r.Namespaced:
		return malformed(fmt.Sprintf("item %q has the namespace %q", Printable(h.name), Printable(h.namespace)), nil)
	case h.kind != "" && h.kind != r.Kind || h.apiVersion != "" && h.apiVersion != r.APIVersion():
		return malformed(fmt.Sprintf("item %q is %s of %s", Printable(h.name), Printable(h.kind), Printable(h.apiVersion)), nil)
	}
	var missing []string
	if h.kind == "" {
		missing = append(missing, `"kind":`+quote(r.Kind))
	}
	if h.apiVersion == "" {
		missing = append(missing, `"apiVersion":`+quote(r.APIVersion()))
	}
	if len(missing) > 0 { // it has metadata, so a comma follows
		raw = append([]byte("{"+strings.Join(missing, ",")+","), bytes.TrimLeft(raw[1:], " \t\r\n")...)
	}
	return Object{Resource: r, Namespace: h.namespace, Name: h.name, UID: h.uid, Version: h.version, JSON: raw}, nil
}

// readHead reads the head of an object. It refuses duplicate members: another reader might use the other value.
func readHead(raw []byte) (h head, err error) {
	metadata := -1
	err = members(raw, 0, map[string]func(at int) error{
		"apiVersion": text(raw, &h.apiVersion),
		"kind":       text(raw, &h.kind),
		"metadata":   func(at int) error { metadata = at; return nil },
	})
	if err != nil || metadata < 0 {
		return h, err
	}
	err = members(raw, metadata, map[string]func(at int) error{
		"name":            text(raw, &h.name),
		"namespace":       text(raw, &h.namespace),
		"uid":             text(raw, &h.uid),
		"resourceVersion": text(raw, &h.version),
	})
	return h, err
}

// members calls the functions of want with the position of the value of each member of the object at i.
func members(raw []byte, i int, want map[string]func(at int) error) error {
	met := make(map[string]bool, len(want))
	var failed error
	end := scan.Loose.Members(raw, i, func(n scan.Name, at int) (int, bool) {
		name := string(n.In(raw))
		if take := want[name]; take != nil {
			if failed = take(at); failed != nil {
				failed = fmt.Errorf("%s: %w", name, failed)
			} else if met[name] {
				failed = fmt.Errorf("it has its %s twice", name)
			}
			met[name] = true
		}
		return scan.Skip(raw, at), failed == nil
	})
	if failed == nil && end < 0 {
		return errors.New("the object, or its metadata, is not a JSON object")
	}
	return failed
}

// text reads a string; null is "".
func text(raw []byte, into *string) func(at int) error {
	return func(at int) error { return json.Unmarshal(raw[at:scan.Skip(raw, at)], into) }
}

// maxObjectName is the longest name of an object or namespace in bytes. Most kinds allow 253; some have no limit.
const maxObjectName = 2048

// CheckNames refuses a name, or a namespace ("": none), that cannot be part of a path.
func CheckNames(namespace, name string) error {
	for _, n := range []string{namespace, name} {
		if n == "." || n == ".." || strings.ContainsAny(n, "/%") || len(n) > maxObjectName || strings.ContainsFunc(n, unicode.IsControl) || name == "" {
			return fmt.Errorf("no object can have the name %.80q in namespace %.80q", Printable(name), Printable(namespace))
		}
	}
	return nil
}

func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always has a form
	}
	return string(data)
}
