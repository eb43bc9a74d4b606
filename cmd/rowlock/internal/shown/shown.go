// Package shown turns objects into the text that people read and compare: YAML, with what
// only machines read left out, and what is secret hidden unless it was asked for.
package shown

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Form says how objects are shown. Use one Form for all objects that are compared: what is
// hidden is numbered, so that one sees whether two hidden values are the same.
type Form struct {
	ManagedFields bool // shown, with the other numbers that each write changes
	Secrets       bool // shown
	hidden        map[string]int
}

// Of is a copy of an object as it is shown. nil stays nil.
func (f *Form) Of(obj map[string]any) map[string]any {
	if obj == nil {
		return nil
	}
	obj = runtime.DeepCopyJSON(obj)
	meta, _ := obj["metadata"].(map[string]any)
	if !f.ManagedFields {
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			delete(meta, field)
		}
	}
	if !f.Secrets && obj["kind"] == "Secret" && obj["apiVersion"] == "v1" {
		f.hide(obj, "data")
		f.hide(obj, "stringData")
		annotations, _ := meta["annotations"].(map[string]any)
		if text, has := annotations[lastApplied]; has { // it holds the data again
			annotations[lastApplied] = f.mask(lastApplied, fmt.Sprint(text))
		}
	}
	return obj
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func (f *Form) hide(obj map[string]any, field string) {
	values, _ := obj[field].(map[string]any)
	for key, value := range values {
		values[key] = f.mask(field+"/"+key, fmt.Sprint(value))
	}
}

// mask tells values of one key apart, and says nothing of what or how long they are.
func (f *Form) mask(key, value string) string {
	if f.hidden == nil {
		f.hidden = map[string]int{}
	}
	both := key + "\x00" + value
	n := f.hidden[both]
	if n == 0 {
		f.hidden["\x00"+key]++
		n = f.hidden["\x00"+key]
		f.hidden[both] = n
	}
	return fmt.Sprintf("(hidden, value %d)", n)
}

// YAML is an object as text, keys in order. nil is no text.
func (f *Form) YAML(obj map[string]any) (string, error) {
	if obj == nil {
		return "", nil
	}
	text, err := yaml.Marshal(f.Of(obj))
	return string(text), err
}

// Diff is what differs between two texts in the unified form, with three lines of context;
// empty for equal ones.
func Diff(oldName, old, newName, new string) string {
	text := string(diff.Diff(oldName, []byte(old), newName, []byte(new)))
	if i := strings.IndexByte(text, '\n'); strings.HasPrefix(text, "diff ") {
		text = text[i+1:] // the line that names a command
	}
	return text
}

// Safe is a text for one line of a terminal: what would steer the terminal, or would turn
// the order of letters around, is shown as a replacement character.
func Safe(s string) string { return strings.Map(harmless, s) }

// SafeLines is Safe for a text of several lines.
func SafeLines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return harmless(r)
	}, s)
}

func harmless(r rune) rune {
	if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029 {
		return '\ufffd'
	}
	return r
}
