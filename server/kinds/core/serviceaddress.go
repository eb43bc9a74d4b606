package core

import (
	"fmt"
	"net/netip"

	netutils "k8s.io/utils/net"
)

// addressWarnings tells what is odd about an address that is accepted.
func addressWarnings(path, text string) []string {
	ip := netutils.ParseIPSloppy(text)
	if ip == nil {
		return nil // that is an error, reported elsewhere
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return []string{fmt.Sprintf("%s: IP address was accepted, but will be invalid in a future Kubernetes release: %v", path, err)}
	}
	if addr.Is6() && addr.String() != text {
		return []string{fmt.Sprintf("%s: IPv6 address %q should be in RFC 5952 canonical format (%q)", path, text, addr.String())}
	}
	return nil
}

// rangeWarnings tells what is odd about a network that is accepted.
func rangeWarnings(path, text string) []string {
	_, network, err := netutils.ParseCIDRSloppy(text)
	if err != nil {
		return nil // that is an error, reported elsewhere
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return []string{fmt.Sprintf("%s: CIDR value was accepted, but will be invalid in a future Kubernetes release: %v", path, err)}
	}
	if prefix.Addr() != prefix.Masked().Addr() {
		return []string{fmt.Sprintf("%s: CIDR value %q is ambiguous in this context (should be %q or %q?)",
			path, text, network.String(), netip.PrefixFrom(prefix.Addr(), prefix.Addr().BitLen()))}
	}
	if prefix.Addr().Is6() && prefix.String() != text {
		return []string{fmt.Sprintf("%s: IPv6 CIDR value %q should be in RFC 5952 canonical format (%q)", path, text, prefix.String())}
	}
	return nil
}
