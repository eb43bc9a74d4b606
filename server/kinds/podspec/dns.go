package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var dnsPolicies = []corev1.DNSPolicy{corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone}

// Limits of name resolution in the C library.
const (
	maxNameservers = 3
	maxSearchPaths = 32
	maxSearchChars = 2048
)

func (c *checker) dnsPolicy(policy corev1.DNSPolicy, p *field.Path) {
	if policy == "" {
		c.required(p.Child("dnsPolicy"), "")
		return
	}
	oneOf(c, p, "dnsPolicy", policy, dnsPolicies)
}

func (c *checker) dnsConfig(s *corev1.PodSpec, p *field.Path) {
	d := s.DNSConfig
	if s.DNSPolicy == corev1.DNSNone {
		if d == nil {
			c.required(p.Child("dnsConfig"), fmt.Sprintf("must provide `dnsConfig` when `dnsPolicy` is %s", corev1.DNSNone))
			return
		}
		if len(d.Nameservers) == 0 {
			c.required(p.Child("dnsConfig").Child("nameservers"), fmt.Sprintf("must provide at least one DNS nameserver when `dnsPolicy` is %s", corev1.DNSNone))
			return
		}
	}
	if d == nil {
		return
	}
	p = p.Child("dnsConfig")
	if len(d.Nameservers) > maxNameservers {
		c.invalid(p.Child("nameservers"), d.Nameservers, fmt.Sprintf("must not have more than %v nameservers", maxNameservers))
	}
	for i, ns := range d.Nameservers {
		c.ip(ns, p.Child("nameservers").Index(i))
	}
	c.searches(d.Searches, p.Child("searches"))
	for i := range d.Options {
		if d.Options[i].Name == "" {
			c.required(p.Child("options").Index(i), "must not be empty")
		}
	}
}

func (c *checker) ip(v string, p *field.Path) {
	c.add(utilvalidation.IsValidIPForLegacyField(p, v, c.o.StrictIPs, nil)...)
}

func (c *checker) searches(list []string, p *field.Path) {
	if len(list) > maxSearchPaths {
		c.invalid(p, list, fmt.Sprintf("must not have more than %v search paths", maxSearchPaths))
	}
	chars := max(0, len(list)-1)
	for _, s := range list {
		chars += len(s)
	}
	if chars > maxSearchChars {
		c.invalid(p, list, fmt.Sprintf("must not have more than %v characters (including spaces) in the search list", maxSearchChars))
	}
	for i, s := range list {
		switch path := strings.TrimSuffix(s, "."); {
		case c.o.AllowLooseSearches && s == ".", okSubdomain(path):
		case c.o.AllowLooseSearches:
			c.messages(p.Index(i), path, utilvalidation.IsDNS1123SubdomainWithUnderscore(path))
		default:
			c.dnsSubdomain(p.Index(i), "", path)
		}
	}
}

func (c *checker) hostAliases(list []corev1.HostAlias, p *field.Path) {
	for i := range list {
		c.ip(list[i].IP, p.Index(i).Child("ip"))
		for j, h := range list[i].Hostnames {
			if !okSubdomain(h) {
				c.dnsSubdomain(p.Index(i).Child("hostnames").Index(j), "", h)
			}
		}
	}
}
