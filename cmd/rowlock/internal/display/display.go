// Package display renders objects as text for people: YAML without the fields that only programs need, with secrets
// hidden on request; and makes text safe for a terminal.
package display

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Form configures how objects are shown. Use one Form for all objects of a comparison: it numbers hidden values, so
// that equal values are recognizable.
type Form struct {
	ManagedFields bool // shown, with the other numbers that each write changes
	Secrets       bool // shown
	hidden        map[string]int
}

// Of returns a copy of an object in the form. nil stays nil.
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

// mask numbers the values of a key and hides their content and length.
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

// YAML returns an object as text, with sorted keys. nil is an empty text.
func (f *Form) YAML(obj map[string]any) (string, error) {
	if obj == nil {
		return "", nil
	}
	text, err := yaml.Marshal(f.Of(obj))
	return string(text), err
}

// Diff returns the unified diff of two texts with three lines of context; empty for equal ones.
func Diff(oldName, old, newName, new string) string {
	text := string(diff.Diff(oldName, []byte(old), newName, []byte(new)))
	if i := strings.IndexByte(text, '\n'); strings.HasPrefix(text, "diff ") {
		text = text[i+1:] // the line that names a command
	}
	return text
}

// Safe returns a text for one line of a terminal: control characters and characters that change the direction of text
// become replacement characters.
func Safe(s string) string { return strings.Map(printable, s) }

// SafeLines is Safe for a text of several lines.
func SafeLines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return printable(r)
	}, s)
}

func printable(r rune) rune {
	if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029 {
		return '\ufffd'
	}
	return r
}
