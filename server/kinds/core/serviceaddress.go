package core

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// addressWarnings returns the warnings of release 1.32 about an accepted address in an unusual form.
func addressWarnings(text string, path *field.Path) []string {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return []string{fmt.Sprintf("%s: IP address was accepted, but will be invalid in a future Kubernetes release: %v", path, err)}
	}
	if addr.Is6() && addr.String() != text {
		return []string{fmt.Sprintf("%s: IPv6 address %q is not in RFC 5952 canonical format (%q), which may cause controller apply-loops", path, text, addr.String())}
	}
	return nil
}

// rangeWarnings returns the warnings of release 1.32 about an accepted network in an unusual form.
func rangeWarnings(text string, path *field.Path) []string {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return []string{fmt.Sprintf("%s: IP prefix was accepted, but will be invalid in a future Kubernetes release: %v", path, err)}
	}
	if prefix.Addr().Is6() && prefix.String() != text {
		return []string{fmt.Sprintf("%s: IPv6 prefix %q is not in RFC 5952 canonical format (%q), which may cause controller apply-loops", path, text, prefix.String())}
	}
	return nil
}
