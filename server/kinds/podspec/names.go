package podspec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// The ok functions accept only names that are certainly valid, without a regular expression; the library
// decides about others, and makes the error texts.

func lowerAlnum(b byte) bool { return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' }

func alnum(b byte) bool { return lowerAlnum(b) || b >= 'A' && b <= 'Z' }

// okLabel matches a DNS-1123 label.
func okLabel(s string) bool {
	if len(s) == 0 || len(s) > 63 || !lowerAlnum(s[0]) || !lowerAlnum(s[len(s)-1]) {
		return false
	}
	for i := 1; i < len(s)-1; i++ {
		if !lowerAlnum(s[i]) && s[i] != '-' {
			return false
		}
	}
	return true
}

// okSubdomain matches a DNS-1123 subdomain.
func okSubdomain(s string) bool {
	if len(s) == 0 || len(s) > 253 {
		return false
	}
	start := true
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case lowerAlnum(b):
			start = false
		case b == '-' && !start && i+1 < len(s) && s[i+1] != '.':
		case b == '.' && !start && i+1 < len(s):
			start = true
		default:
			return false
		}
	}
	return !start
}

// okLabelValue matches the value of a label.
func okLabelValue(s string) bool {
	if s == "" {
		return true
	}
	if len(s) > 63 || !alnum(s[0]) || !alnum(s[len(s)-1]) {
		return false
	}
	for i := 1; i < len(s)-1; i++ {
		if b := s[i]; !alnum(b) && b != '-' && b != '_' && b != '.' {
			return false
		}
	}
	return true
}

// okQualifiedName matches the key of a label or annotation.
func okQualifiedName(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == '/' {
			return okSubdomain(s[:i]) && s[i+1:] != "" && okLabelValue(s[i+1:])
		}
	}
	return s != "" && okLabelValue(s)
}

// DataKeyFaults returns the faults of a key of a ConfigMap or Secret.
func DataKeyFaults(key string) []string {
	if okDataKey(key) {
		return nil
	}
	return utilvalidation.IsConfigMapKey(key)
}

// okDataKey matches a key of a ConfigMap or Secret.
func okDataKey(s string) bool {
	if s == "" || len(s) > 253 || s[0] == '.' {
		return false
	}
	for i := range len(s) {
		if b := s[i]; !alnum(b) && b != '-' && b != '_' && b != '.' {
			return false
		}
	}
	return true
}

// okSelector matches a label selector.
func okSelector(s *metav1.LabelSelector) bool {
	if s == nil {
		return true
	}
	for k, v := range s.MatchLabels {
		if !okQualifiedName(k) || !okLabelValue(v) {
			return false
		}
	}
	for i := range s.MatchExpressions {
		e := &s.MatchExpressions[i]
		values := e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn
		exists := e.Operator == metav1.LabelSelectorOpExists || e.Operator == metav1.LabelSelectorOpDoesNotExist
		if !okQualifiedName(e.Key) || !values && !exists || values != (len(e.Values) > 0) {
			return false
		}
		for _, v := range e.Values {
			if !okLabelValue(v) {
				return false
			}
		}
	}
	return true
}

// selector checks a label selector.
func (c *checker) selector(s *metav1.LabelSelector, allowInvalidValues bool, p *field.Path, child string) {
	if !okSelector(s) {
		c.add(rules.LooseSelector(s, allowInvalidValues, p.Child(child))...)
	}
}

func (c *checker) dnsLabel(p *field.Path, child, value string) {
	if !okLabel(value) {
		c.messages(at(p, child), value, utilvalidation.IsDNS1123Label(value))
	}
}

func (c *checker) dnsSubdomain(p *field.Path, child, value string) {
	if !okSubdomain(value) {
		c.messages(at(p, child), value, utilvalidation.IsDNS1123Subdomain(value))
	}
}

// objectName checks the name of an object that must be a DNS subdomain.
func (c *checker) objectName(p *field.Path, child, value string) {
	if !okSubdomain(value) {
		c.messages(at(p, child), value, validation.NameIsDNSSubdomain(value, false))
	}
}

// objectNamePrefix is objectName for a value that may end in a dash.
func (c *checker) objectNamePrefix(p *field.Path, child, value string) {
	if !okSubdomain(value) {
		c.messages(at(p, child), value, validation.NameIsDNSSubdomain(value, true))
	}
}

func (c *checker) qualifiedName(p *field.Path, child, value string) {
	if !okQualifiedName(value) {
		c.messages(at(p, child), value, utilvalidation.IsQualifiedName(value))
	}
}

// labels checks keys and values of a label map.
func (c *checker) labels(p *field.Path, child string, labels map[string]string) {
	ok := true
	for k, v := range labels {
		ok = ok && okQualifiedName(k) && okLabelValue(v)
	}
	if ok {
		return
	}
	p = at(p, child)
	for _, k := range sortedKeys(labels) {
		c.qualifiedName(p, "", k)
		if v := labels[k]; !okLabelValue(v) {
			c.messages(p, v, utilvalidation.IsValidLabelValue(v))
		}
	}
}

// at is p.Child(child), or p where there is no child.
func at(p *field.Path, child string) *field.Path {
	if child == "" {
		return p
	}
	return p.Child(child)
}

// NameWarning warns of a name that pods cannot have as a host name.
func NameWarning(name string) []string {
	if messages := utilvalidation.IsDNS1123Label(name); len(messages) > 0 {
		return []string{fmt.Sprintf("metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: %v", messages)}
	}
	return nil
}
