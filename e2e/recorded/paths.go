package recorded

import (
	"encoding/json"
	"strconv"
	"strings"
)

func sortAt(v any, path string) {
	for _, m := range at(v, path) {
		if l, ok := m.value.([]any); ok {
			full := func(v any) string { b, _ := json.Marshal(v); return string(b) }
			sorted(l, full)
		}
	}
}

type match struct{ value any }

// at finds the values at a dotted path; "*" means every item. Keys that
// hold dots are found by trying longer keys.
func at(v any, path string) []match {
	if path == "" {
		return []match{{v}}
	}
	var out []match
	walk(v, strings.Split(path, "."), func(v any) { out = append(out, match{v}) })
	return out
}

func walk(v any, path []string, fn func(any)) {
	if len(path) == 0 {
		fn(v)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if path[0] == "*" {
			for _, e := range v {
				walk(e, path[1:], fn)
			}
			return
		}
		for n := 1; n <= len(path); n++ {
			if e, ok := v[strings.Join(path[:n], ".")]; ok {
				walk(e, path[n:], fn)
				return
			}
		}
	case []any:
		if path[0] == "*" {
			for _, e := range v {
				walk(e, path[1:], fn)
			}
		} else if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(v) {
			walk(v[i], path[1:], fn)
		}
	}
}

func values(v any, path string) any {
	var out []any
	for _, m := range at(v, path) {
		out = append(out, m.value)
	}
	if len(out) == 1 {
		return out[0]
	}
	if out == nil {
		return nil
	}
	return out
}

func remove(v any, path []string) {
	switch v := v.(type) {
	case map[string]any:
		if path[0] == "*" {
			for k, e := range v {
				if len(path) == 1 {
					delete(v, k)
				} else {
					remove(e, path[1:])
				}
			}
			return
		}
		for n := 1; n <= len(path); n++ {
			key := strings.Join(path[:n], ".")
			if e, ok := v[key]; ok {
				if n == len(path) {
					delete(v, key)
				} else {
					remove(e, path[n:])
				}
				return
			}
		}
	case []any:
		if path[0] == "*" {
			for i := range v {
				if len(path) == 1 {
					v[i] = nil
				} else {
					remove(v[i], path[1:])
				}
			}
		} else if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(v) {
			if len(path) == 1 {
				v[i] = nil
			} else {
				remove(v[i], path[1:])
			}
		}
	}
}
