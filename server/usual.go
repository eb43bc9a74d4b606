package server

import (
	"net/netip"
	"os"

	"github.com/rowlock/rowlock/server/verbs/components"
	"github.com/rowlock/rowlock/server/verbs/podverbs"
)

// Usual fills in what follows from the rest of a Config, its Feature and Address above all,
// in each server that is not made for one purpose. services are the networks of services.
func (c *Config) Usual(services []netip.Prefix) {
	if c.Feature("APIServerIdentity") {
		host, err := os.Hostname()
		if err != nil { // where that cannot be told, each server is a host of its own
			host = c.Address
		}
		c.Controllers.Host, c.Controllers.StorageVersions = host, c.Feature("StorageVersionAPI")
	}
	if c.Feature("MultiCIDRServiceAllocator") {
		c.Controllers.ServiceNetworks = services
	}
	c.Components = []components.Component{components.Local("scheduler", 10259), components.Local("controller-manager", 10257)}
	if c.Kubelet == nil {
		c.Kubelet = &podverbs.Kubelet{}
	}
}
