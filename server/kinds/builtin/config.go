package builtin

import (
	"net/netip"
	"time"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/core"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/release"
)

// Config are the operator's settings of built-in resources. Its zero value is the default.
type Config struct {
	// ServiceCIDRs are the networks of service addresses, one a family, the default
	// family first; none is 10.96.0.0/16.
	ServiceCIDRs []netip.Prefix
	// FirstNodePort and LastNodePort bound the ports that services have on nodes;
	// zero is 30000-32767.
	FirstNodePort, LastNodePort int32
	// EventTTL is the time to live of events; zero is an hour.
	EventTTL time.Duration
	// Release is the release of the resources.
	Release release.Version
	// MinCompatibility is the oldest release that other servers of the cluster may have: the storage hashes of
	// discovery are of versions that it can read. The zero value is the oldest release of all.
	MinCompatibility release.Version
	// Feature reports which feature gates are on; nil: those that are by default in the release. It is
	// called only while the resources are made.
	Feature kinds.Feature
	// NoPrivileged refuses pods, and templates of them, with privileged containers.
	NoPrivileged bool
}

func (c Config) feature() kinds.Feature {
	gate := c.Feature
	if gate == nil {
		gate = gates.New(c.Release).Enabled
	}
	return kinds.Feature(func(name string) bool {
		if name == podspec.NoPrivileged {
			return c.NoPrivileged
		}
		return gate(name)
	}).In(c.Release)
}

func (c Config) services() *core.ServiceAllocator {
	if len(c.ServiceCIDRs) == 0 {
		c.ServiceCIDRs = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96, 0, 0}), 16)}
	}
	if c.FirstNodePort == 0 && c.LastNodePort == 0 {
		c.FirstNodePort, c.LastNodePort = 30000, 32767
	}
	a := core.NewServiceAllocator(c.ServiceCIDRs, c.FirstNodePort, c.LastNodePort).OfRelease(c.Release)
	a.Strictly(c.Feature != nil && c.Feature("StrictIPCIDRValidation"))
	if c.Feature != nil && c.Feature("MultiCIDRServiceAllocator") {
		return a.FollowRanges()
	}
	return a
}
