package serve

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/rowlock/rowlock/server"
)

// network holds the addresses that follow from the flags.
type network struct {
	advertise, serviceIP net.IP
	local                string // host:port for a kubeconfig on this machine
	services             []netip.Prefix
	firstPort, lastPort  int32
}

// serviceNetworks parses the networks of services, one for each IP family.
func serviceNetworks(text string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for part := range strings.SplitSeq(text, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(part))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q is not a network: want one such as 10.96.0.0/16", part)
		case prefix.Addr().BitLen()-prefix.Bits() < 3:
			return nil, fmt.Errorf("%s is too small", prefix)
		case len(list) == 2 || len(list) == 1 && list[0].Addr().Is4() == prefix.Addr().Is4():
			return nil, errors.New("want one network, or one of each family")
		}
		list = append(list, prefix.Masked())
	}
	return list, nil
}

func (o *options) network() (*network, error) {
	n := &network{}
	if o.securePort < 1 || o.securePort > 65535 {
		return nil, fmt.Errorf("--secure-port %d: not a port: want 1 to 65535", o.securePort)
	}
	bind := net.ParseIP(o.bindAddress)
	if bind == nil {
		return nil, fmt.Errorf("--bind-address %q: not an IP address: want one such as 192.0.2.1", o.bindAddress)
	}
	var err error
	if n.services, err = serviceNetworks(o.serviceRange); err != nil {
		return nil, fmt.Errorf("--service-cluster-ip-range %q: %w", o.serviceRange, err)
	}
	n.serviceIP = net.IP(n.services[0].Addr().Next().AsSlice())
	if _, err := fmt.Sscanf(o.nodePortRange, "%d-%d", &n.firstPort, &n.lastPort); err != nil || n.firstPort < 1 || n.lastPort > 65535 || n.firstPort > n.lastPort {
		return nil, fmt.Errorf("--service-node-port-range %q: want FIRST-LAST, two ports such as 30000-32767", o.nodePortRange)
	}
	host := o.bindAddress
	if bind.IsUnspecified() {
		host = "127.0.0.1"
	}
	n.local = net.JoinHostPort(host, strconv.Itoa(o.securePort))
	if o.advertiseAddress != "" {
		if n.advertise = net.ParseIP(o.advertiseAddress); n.advertise == nil {
			return nil, fmt.Errorf("--advertise-address %q: not an IP address: want one such as 192.0.2.1", o.advertiseAddress)
		}
		return n, nil
	}
	n.advertise = bind
	if bind.IsUnspecified() || bind.IsLoopback() {
		n.advertise = outgoingIP()
	}
	return n, nil
}

// bootstrap omits the endpoint if this machine has only a loopback address, which endpoints may not have.
func (n *network) bootstrap(port int) server.Bootstrap {
	b := server.Bootstrap{ServiceIP: n.serviceIP, AdvertisePort: port}
	if !n.advertise.IsLoopback() {
		b.AdvertiseIP = n.advertise
	}
	return b
}

// outgoingIP returns the first address of this machine that other machines can reach, or the loopback address.
func outgoingIP() net.IP {
	addrs, err := net.InterfaceAddrs()
	if err == nil {
		for _, a := range addrs {
			if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
				return ip.IP
			}
		}
	}
	return net.IPv4(127, 0, 0, 1)
}
