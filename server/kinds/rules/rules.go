// Package rules holds the validation rules that kinds of several API groups
// share: numbers, percentages, names, selectors and immutable fields.
//
// It promises: no rule changes its arguments; errors have the paths and texts
// of release 1.32; an empty list means valid.
package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// Same reports whether two API values mean the same: empty and absent are equal,
// quantities and times compare by value.
func Same(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// Immutable checks that a value did not change.
func Immutable(value, old any, path *field.Path) field.ErrorList {
	if Same(old, value) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, Shown(value), apivalidation.FieldImmutableErrorMsg)}
}

// NotNegative checks that a number is at least zero.
func NotNegative[T ~int32 | ~int64](v T, path *field.Path) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(int64(v), path)
}

// NotNegativePtr is NotNegative for a number that may be absent.
func NotNegativePtr[T ~int32 | ~int64](v *T, path *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	return NotNegative(*v, path)
}

// AtMost checks a count of a status against another one that bounds it.
func AtMost(v, limit int32, path *field.Path, message string) field.ErrorList {
	return InvalidIf(nil, v > limit, path, v, message)
}

// NotDecremented checks a counter that only rises; losing it counts as falling.
func NotDecremented(v, old *int32, path *field.Path) field.ErrorList {
	if old == nil || v != nil && *v >= *old {
		return nil
	}
	var shown int32
	if v != nil {
		shown = *v
	}
	return field.ErrorList{field.Invalid(path, shown, "cannot be decremented")}
}

// OneOf checks an enumeration; supported is listed in the order given.
func OneOf[T ~string](v T, path *field.Path, supported ...T) field.ErrorList {
	for _, s := range supported {
		if v == s {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, v, supported)}
}

// RequiredOneOf is OneOf for a value that is required.
func RequiredOneOf[T ~string](v T, path *field.Path, supported ...T) field.ErrorList {
	if v == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return OneOf(v, path, supported...)
}

// IntOrPercent checks a count that may be a percentage.
func IntOrPercent(v intstr.IntOrString, path *field.Path) field.ErrorList {
	switch v.Type {
	case intstr.Int:
		return NotNegative(v.IntVal, path)
	case intstr.String:
		return Messages(path, v, validation.IsValidPercent(v.StrVal))
	default:
		return field.ErrorList{field.Invalid(path, v, "must be an integer or percentage (e.g '5%%')")}
	}
}

// AtMostAll checks that a percentage is not above 100%.
func AtMostAll(v intstr.IntOrString, path *field.Path) field.ErrorList {
	if n, ok := percent(v); ok && n > 100 {
		return field.ErrorList{field.Invalid(path, v, "must not be greater than 100%")}
	}
	return nil
}

// Amount returns the number in a count or percentage.
func Amount(v intstr.IntOrString) int {
	if n, ok := percent(v); ok {
		return n
	}
	return v.IntValue()
}

func percent(v intstr.IntOrString) (int, bool) {
	if v.Type != intstr.String || len(validation.IsValidPercent(v.StrVal)) > 0 {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%"))
	return n, err == nil
}

// Selector checks a label selector, strictly; nil is valid.
func Selector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return LooseSelector(s, false, path)
}

// SelectorInvalid reports whether a selector has a label value that is not valid.
func SelectorInvalid(s *metav1.LabelSelector) bool {
	return s != nil && len(Selector(s, nil)) > 0
}

// SelectorEmpty reports whether a selector is there and selects everything.
func SelectorEmpty(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// Messages turns the messages of a library check into errors about one value.
func Messages(path *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, m := range messages {
		errs = append(errs, field.Invalid(path, value, m))
	}
	return errs
}

// QualifiedName checks "example.com/name" or "name".
func QualifiedName(v string, path *field.Path) field.ErrorList {
	return Messages(path, v, validation.IsQualifiedName(v))
}

// Subdomain checks a name like "example.com".
func Subdomain(v string, path *field.Path) field.ErrorList {
	return Messages(path, v, validation.IsDNS1123Subdomain(v))
}

// Label checks a name like "my-name".
func Label(v string, path *field.Path) field.ErrorList {
	return Messages(path, v, validation.IsDNS1123Label(v))
}

// maxDriverName bounds the bytes of the name of a driver.
const maxDriverName = 63

// DriverName checks the name of a driver of storage or devices, which is a subdomain in any case.
func DriverName(v string, path *field.Path) field.ErrorList {
	errs := RequiredIf(nil, v == "", path, "")
	if len(v) > maxDriverName {
		errs = append(errs, field.TooLong(path, "", maxDriverName))
	}
	return append(errs, Messages(path, v, validation.IsDNS1123Subdomain(strings.ToLower(v)))...)
}

// DriverNameSince133 is DriverName in releases after 1.32, where an empty name has no other fault.
func DriverNameSince133(v string, path *field.Path) field.ErrorList {
	if v == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return DriverName(v, path)
}

// ServiceLabel checks a name that starts with a letter, as Services have.
func ServiceLabel(v string, path *field.Path) field.ErrorList {
	return Messages(path, v, validation.IsDNS1035Label(v))
}

// Addresses checks addresses and networks of fields that predate the strict rule.
type Addresses struct {
	Strict bool                // refuse forms that programs read differently
	Kept   *Membership[string] // texts of the old object, which it may keep; nil: none
}

// IP checks an address.
func (a Addresses) IP(v string, path *field.Path) field.ErrorList {
	if a.kept(v) {
		return nil
	}
	return validation.IsValidIPForLegacyField(path, v, a.Strict, nil)
}

// CIDR checks a network.
func (a Addresses) CIDR(v string, path *field.Path) field.ErrorList {
	if a.kept(v) {
		return nil
	}
	return validation.IsValidCIDRForLegacyField(path, v, a.Strict, nil)
}

func (a Addresses) kept(v string) bool { return a.Strict && a.Kept != nil && a.Kept.Has(v) }

// RoutableIP checks that an address can be reached from elsewhere.
func RoutableIP(address string, path *field.Path) field.ErrorList {
	ip := netutils.ParseIPSloppy(address)
	if ip == nil {
		return field.ErrorList{field.Invalid(path, address, "must be a valid IP address")}
	}
	var errs field.ErrorList
	refuse := func(is bool, message string) {
		errs = InvalidIf(errs, is, path, address, message)
	}
	refuse(ip.IsUnspecified(), fmt.Sprintf("may not be unspecified (%v)", address))
	refuse(ip.IsLoopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)")
	refuse(ip.IsLinkLocalUnicast(), "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
	refuse(ip.IsLinkLocalMulticast(), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
	return errs
}

// IPWarnings returns warnings about an address in an unusual form.
func IPWarnings(v string, path *field.Path) []string {
	if !IsIP(v) {
		return nil
	}
	return validation.GetWarningsForIP(path, v)
}

// CIDRWarnings returns warnings about a network in an unusual form.
func CIDRWarnings(v string, path *field.Path) []string {
	if _, _, err := netutils.ParseCIDRSloppy(v); err != nil {
		return nil
	}
	return validation.GetWarningsForCIDR(path, v)
}

// IsIP reports whether a text is an address, leading zeros tolerated.
func IsIP(v string) bool { return netutils.ParseIPSloppy(v) != nil }

// DefaultTo sets a pointer that is nil.
func DefaultTo[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

// Value returns the value of a pointer, or the zero value.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Twice repeats errors. A stock server checks updates of some kinds by the rules of a create and by those of
// an update, which are the same, and returns the errors of both.
func Twice(errs field.ErrorList) field.ErrorList { return append(errs[:len(errs):len(errs)], errs...) }

// Seen finds the values of a list that have been before.
type Seen[T comparable] map[T]struct{}

// Again records a value and reports whether it was recorded before.
func (s Seen[T]) Again(value T) bool {
	if _, ok := s[value]; ok {
		return true
	}
	s[value] = struct{}{}
	return false
}

// MaxErrors errors are more than an answer contains about one object: checks of all pairs of a list's items stop
// there.
const MaxErrors = 10_000

// Membership finds values in a list whose length a client chose: each search costs the same,
// however long the list is.
type Membership[T comparable] struct {
	list []T
	set  map[T]struct{} // of a long list, made at the first search
}

// few is the number of values up to which a linear search is faster than making a set.
const few = 16

// In makes a Membership of a list, which must stay as it is.
func In[T comparable](list []T) *Membership[T] { return &Membership[T]{list: list} }

// Has reports whether the list has a value.
func (a *Membership[T]) Has(value T) bool {
	if len(a.list) <= few {
		return slices.Contains(a.list, value)
	}
	if a.set == nil {
		a.set = make(map[T]struct{}, len(a.list))
		for _, v := range a.list {
			a.set[v] = struct{}{}
		}
	}
	_, ok := a.set[value]
	return ok
}
