package rowlocktest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rowlock/rowlock/sqlstore"
)

// differences returns the changes of an object by a write, one text a field.
func differences(c *sqlstore.Change) []string {
	switch {
	case c.Deleted:
		return []string{"deleted"}
	case c.PrevRevision == 0:
		return []string{"created"}
	}
	var old, now map[string]any
	if json.Unmarshal(c.PrevValue, &old) != nil || json.Unmarshal(c.Value, &now) != nil {
		return nil
	}
	for _, obj := range []map[string]any{old, now} {
		if meta, ok := obj["metadata"].(map[string]any); ok {
			delete(meta, "managedFields")
			delete(meta, "generation")
			if meta["deletionTimestamp"] != nil {
				meta["deletionTimestamp"] = "set"
			}
		}
		timeless(obj)
	}
	var list []string
	compare("", old, now, &list)
	return list
}

// timeless removes times from a value, so that the output of tests does not change between runs.
func timeless(v any) {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(key string, one any) bool {
			return strings.HasSuffix(key, "Time") || strings.HasSuffix(key, "Timestamp") && one != "set"
		})
		for _, one := range v {
			timeless(one)
		}
	case []any:
		for _, one := range v {
			timeless(one)
		}
	}
}

// compare adds the differences between two values at a path.
func compare(path string, old, now any, list *[]string) {
	switch {
	case text(old) == text(now):
	case isMap(old) && isMap(now):
		a, b := old.(map[string]any), now.(map[string]any)
		keys := slices.Sorted(maps.Keys(a))
		for key := range b {
			if _, both := a[key]; !both {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			compare(join(path, key), a[key], b[key], list)
		}
	case named(old) && named(now):
		compare(path, byName(old.([]any)), byName(now.([]any)), list)
	default:
		*list = append(*list, path+": "+quoted(old)+" → "+quoted(now))
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	if strings.ContainsAny(key, "./ ") {
		return path + "[" + key + "]"
	}
	return path + "." + key
}

func isMap(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// named reports whether all elements of a list have names.
func named(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(one any) bool { return label(one) == "" })
}

func byName(list []any) map[string]any {
	m := map[string]any{}
	for _, one := range list {
		m[label(one)] = one
	}
	return m
}

// maxValue limits the shown length of a value.
const maxValue = 60

func quoted(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case string:
		return strconv.Quote(cut(v, maxValue))
	}
	return cut(text(v), maxValue)
}

// cut shortens a text.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
