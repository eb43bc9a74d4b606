package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var protocols = []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}

func okPort(n int32) bool { return n >= 1 && n <= 65535 }

func (c *checker) ports(ports []corev1.ContainerPort, p *field.Path) {
	var names nameSet
	for i := range ports {
		port := &ports[i]
		if port.Name != "" {
			if msgs := portNameProblems(port.Name); len(msgs) > 0 {
				c.messages(p.Index(i).Child("name"), port.Name, msgs)
			} else if names.has(port.Name) {
				c.duplicate(p.Index(i).Child("name"), port.Name)
			} else {
				names.add(port.Name)
			}
		}
		if port.ContainerPort == 0 {
			c.required(p.Index(i).Child("containerPort"), "")
		} else if !okPort(port.ContainerPort) {
			c.messages(p.Index(i).Child("containerPort"), port.ContainerPort, utilvalidation.IsValidPortNum(int(port.ContainerPort)))
		}
		if port.HostPort != 0 && !okPort(port.HostPort) {
			c.messages(p.Index(i).Child("hostPort"), port.HostPort, utilvalidation.IsValidPortNum(int(port.HostPort)))
		}
		if port.Protocol == "" {
			c.required(p.Index(i).Child("protocol"), "")
		} else if port.Protocol != corev1.ProtocolTCP {
			oneOf(c, p.Index(i), "protocol", port.Protocol, protocols)
		}
	}
}

// hostPorts reports two ports of the containers on one port of the node. p is the
// path of the list.
func (c *checker) hostPorts(list []corev1.Container, p *field.Path) {
	var seen map[string]bool
	for i := range list {
		for j := range list[i].Ports {
			port := &list[i].Ports[j]
			if port.HostPort == 0 {
				continue
			}
			key := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
			if seen[key] {
				c.duplicate(p.Index(i).Child("ports").Index(j).Child("hostPort"), key)
				continue
			}
			if seen == nil {
				seen = make(map[string]bool)
			}
			seen[key] = true
		}
	}
}

// hostNetworkPorts checks that ports of a pod on the node's network are equal to the host ports. Templates
// may omit the host port, which the pods get.
func (c *checker) hostNetworkPorts(s *corev1.PodSpec, p *field.Path) {
	if !s.HostNetwork {
		return
	}
	for i := range s.Containers {
		for j := range s.Containers[i].Ports {
			port := &s.Containers[i].Ports[j]
			if (c.o.Pod || port.HostPort != 0) && port.HostPort != port.ContainerPort {
				c.invalid(p.Child("containers").Index(i).Child("ports").Index(j).Child("hostPort"), port.HostPort,
					"must match `containerPort` when `hostNetwork` is true")
			}
		}
	}
}

// portRef checks a port by number or by name.
func (c *checker) portRef(port intstr.IntOrString, p *field.Path) {
	switch port.Type {
	case intstr.Int:
		if !okPort(port.IntVal) {
			c.messages(p.Child("port"), port.IntValue(), utilvalidation.IsValidPortNum(port.IntValue()))
		}
	case intstr.String:
		c.messages(p.Child("port"), port.StrVal, portNameProblems(port.StrVal))
	default:
		c.add(field.InternalError(p.Child("port"), fmt.Errorf("unknown type: %v", port.Type)))
	}
}

func portNameProblems(s string) []string {
	letter := false
	for i := range len(s) {
		switch b := s[i]; {
		case b >= 'a' && b <= 'z':
			letter = true
		case b >= '0' && b <= '9':
		case b == '-' && i > 0 && i < len(s)-1 && s[i-1] != '-':
		default:
			return utilvalidation.IsValidPortName(s)
		}
	}
	if letter && len(s) <= 15 {
		return nil
	}
	return utilvalidation.IsValidPortName(s)
}
