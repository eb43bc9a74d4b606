package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Object is one object as a server gave it, with its kind and version in it.
type Object struct {
	Resource  Resource
	Namespace string // "" for cluster scope
	Name      string
	UID       string
	Version   string // resourceVersion
	JSON      []byte // valid until the next object
}

// head is what is read of an object where it is listed.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

// item makes an object of what a list has, where kind and version are not said.
func item(r Resource, raw []byte) (Object, error) {
	malformed := func(what string, err error) (Object, error) {
		return Object{}, &MalformedError{Path: r.Path(""), What: what, Err: err}
	}
	if len(raw) == 0 || raw[0] != '{' {
		return malformed("an item is no object", nil)
	}
	var h head
	if err := json.Unmarshal(raw, &h); err != nil {
		return malformed("an item", err)
	}
	m := h.Metadata
	switch {
	case m.Name == "" || m.Name == "." || m.Name == ".." || strings.ContainsAny(m.Name, "/%") || strings.ContainsAny(m.Namespace, "/%"):
		return malformed(fmt.Sprintf("an item has the name %q in namespace %q", Printable(m.Name), Printable(m.Namespace)), nil)
	case (m.Namespace != "") != r.Namespaced:
		return malformed(fmt.Sprintf("item %q has the namespace %q", Printable(m.Name), Printable(m.Namespace)), nil)
	case h.Kind != "" && h.Kind != r.Kind || h.APIVersion != "" && h.APIVersion != r.APIVersion():
		return malformed(fmt.Sprintf("item %q is %s of %s", Printable(m.Name), Printable(h.Kind), Printable(h.APIVersion)), nil)
	}
	var missing []string
	if h.Kind == "" {
		missing = append(missing, `"kind":`+quote(r.Kind))
	}
	if h.APIVersion == "" {
		missing = append(missing, `"apiVersion":`+quote(r.APIVersion()))
	}
	if len(missing) > 0 { // it has metadata, so a comma follows
		raw = append([]byte("{"+strings.Join(missing, ",")+","), bytes.TrimLeft(raw[1:], " \t\r\n")...)
	}
	return Object{Resource: r, Namespace: m.Namespace, Name: m.Name, UID: m.UID, Version: m.ResourceVersion, JSON: raw}, nil
}

func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always has a form
	}
	return string(data)
}
