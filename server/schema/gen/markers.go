package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/server/release"
)

// markers writes one line a marker, sorted by type and field:
//
//	type k8s.io/api/core/v1.SecretKeySelector atomic
//	field k8s.io/api/core/v1.PodSpec containers map name
//	field k8s.io/api/core/v1.LabelSelector matchLabels atomic
//	default k8s.io/api/core/v1.ContainerPort protocol "TCP"
//
// Where newer sources differ for a type, all their markers come first, between the lines "newer TYPE" and "end".
// Packages whose types are aliases of another's have no lines.
func (s *source) markers(newer *source) []byte {
	var out bytes.Buffer
	older := map[string]bool{}
	for _, p := range slices.Concat(packages, since) {
		older[release.Older(p)] = true
	}
	for _, name := range names(s, newer) {
		if older[name[:strings.LastIndexByte(name, '.')]] {
			continue
		}
		old, latest := s.markersOf(name), newer.markersOf(name)
		if newer.types[name] != nil && latest != old {
			fmt.Fprintf(&out, "newer %s\n%send\n", name, latest)
		}
		out.WriteString(old)
	}
	return out.Bytes()
}

// markersOf returns the lines of a type. A type that these sources lack is from an older version.
func (s *source) markersOf(name string) string {
	dot := strings.LastIndexByte(name, '.')
	t := s.types[name]
	for path := release.Older(name[:dot]); t == nil && path != ""; path = release.Older(path) {
		t = s.types[path+name[dot:]]
	}
	if t == nil {
		return ""
	}
	var out strings.Builder
	if atomicMarker(t.markers) {
		fmt.Fprintf(&out, "type %s atomic\n", name)
	}
	st, ok := s.structOf(t)
	if !ok || t.alias {
		return out.String()
	}
	for _, f := range s.fields(st) {
		if rule := mergeRule(f); rule != "" {
			fmt.Fprintf(&out, "field %s %s %s\n", name, f.name, rule)
		}
		if v := s.fieldDefault(f); v != "" {
			fmt.Fprintf(&out, "default %s %s %s\n", name, f.name, v)
		}
	}
	return out.String()
}

func atomicMarker(m markers) bool {
	return m.get("structType") == "atomic" || m.get("mapType") == "atomic" || m.get("listType") == "atomic"
}

// mergeRule returns "atomic", "granular", "set" or "map key...". Lists without a list
// type follow their patch strategy.
func mergeRule(f fieldDecl) string {
	switch f.markers.get("listType") {
	case "atomic":
		return "atomic"
	case "set":
		return "set"
	case "map":
		return "map " + strings.Join(f.markers["listMapKey"], " ")
	}
	if f.markers.get("mapType") == "atomic" || f.markers.get("structType") == "atomic" {
		return "atomic"
	}
	if f.markers.get("mapType") == "granular" || f.markers.get("structType") == "granular" {
		return "granular"
	}
	if strings.HasPrefix(f.tag.Get("patchStrategy"), "merge") {
		if key := f.tag.Get("patchMergeKey"); key != "" {
			return "map " + key
		}
		return "set"
	}
	return ""
}

// fieldDefault returns the JSON of a field's +default, or "".
func (s *source) fieldDefault(f fieldDecl) string {
	v := f.markers.get("default")
	if name, ok := strings.CutPrefix(v, "ref("); ok {
		return fmt.Sprintf("%q", f.scope.pkg.consts[strings.TrimSuffix(name, ")")])
	}
	return v
}
