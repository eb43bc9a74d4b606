package cli

import (
	"net"
	"slices"
	"testing"
)

func TestSplitNames(t *testing.T) {
	names, ips := SplitHosts([]string{"a.example", "10.0.0.1", "::1", "b"})
	if !slices.Equal(names, []string{"a.example", "b"}) || len(ips) != 2 || !ips[0].Equal(net.IPv4(10, 0, 0, 1)) || !ips[1].Equal(net.IPv6loopback) {
		t.Error(names, ips)
	}
}
