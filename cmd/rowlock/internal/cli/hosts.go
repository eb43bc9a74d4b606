package cli

import (
	"net"
)

// SplitHosts separates host names from IP addresses.
func SplitHosts(list []string) (names []string, ips []net.IP) {
	for _, name := range list {
		if ip := net.ParseIP(name); ip != nil {
			ips = append(ips, ip)
		} else {
			names = append(names, name)
		}
	}
	return names, ips
}
