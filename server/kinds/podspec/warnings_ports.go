package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ports warns of ports that are declared twice.
func (a *adviser) ports(s *corev1.PodSpec) {
	type declared struct {
		port *corev1.ContainerPort
		w    where
		i    int
	}
	path := func(w where, i int) *field.Path { return w.path(a.spec).Child("ports").Index(i) }
	type key struct {
		number   int32
		protocol corev1.Protocol
	}
	var all map[key][]declared
	visitContainers(s, func(c *corev1.Container, w where) {
		if len(c.Ports) > 0 && all == nil {
			all = make(map[key][]declared)
		}
		for i := range c.Ports {
			port := &c.Ports[i]
			if port.HostIP != "" && port.HostPort == 0 {
				a.warnf(path(w, i), "hostIP set without hostPort: %+v", *port)
			}
			k := key{port.ContainerPort, port.Protocol}
			for _, other := range all[k] {
				if len(a.out) == maxWarnings {
					return
				}
				if msg := portClash(port, other.port); msg != "" {
					a.warnf(path(w, i), "%s port definition with %s", msg, path(other.w, other.i))
				}
			}
			if len(all[k]) < maxCompared {
				all[k] = append(all[k], declared{port, w, i})
			}
		}
	})
}

// portNames warns of names that two ports of the pod have.
func (a *adviser) portNames(s *corev1.PodSpec) {
	type place struct {
		where
		port int
	}
	path := func(p place) *field.Path { return p.path(a.spec).Child("ports").Index(p.port) }
	var names nameSet
	var first map[string]place // made when a name comes again
	visitContainers(s, func(c *corev1.Container, w where) {
		for i := range c.Ports {
			name := c.Ports[i].Name
			if name == "" {
				continue
			}
			if !names.has(name) {
				names.add(name)
				continue
			}
			if first == nil {
				first = make(map[string]place)
				visitContainers(s, func(c *corev1.Container, w where) {
					for i := range c.Ports {
						if _, known := first[c.Ports[i].Name]; !known {
							first[c.Ports[i].Name] = place{w, i}
						}
					}
				})
			}
			if len(a.out) < maxWarnings {
				other := path(first[name])
				a.warnf(path(place{w, i}), "duplicate port name %q with %s, services and probes that select ports by name will use %s", name, other, other)
			}
		}
	})
}

// portClash describes how two ports of one number and protocol conflict, or is "".
func portClash(a, b *corev1.ContainerPort) string {
	switch {
	case a.HostIP == b.HostIP && a.HostPort == b.HostPort:
		return "duplicate"
	case a.HostPort == 0 || b.HostPort == 0:
		return "overlapping"
	case a.HostPort == b.HostPort && (a.HostIP == "") != (b.HostIP == ""):
		return "dangerously ambiguous"
	}
	return ""
}
