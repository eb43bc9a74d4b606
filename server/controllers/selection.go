package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/server/controllers/migrations"
	"github.com/rowlock/rowlock/server/controllers/networks"
	"github.com/rowlock/rowlock/server/controllers/storageversions"
)

// onRequest are the switches that are off unless they are named.
var onRequest = []string{
	"tokencleaner", "bootstrapsigner", "podgc", migrations.Switch, networks.CIDRSwitch,
}

// longNames are the other names of switches in stock components.
var longNames = map[string]string{
	"namespace-controller": "namespace", "serviceaccount-controller": "serviceaccount",
	"certificatesigningrequest-signing-controller": "csrsigning", "certificatesigningrequest-approving-controller": "csrapproving",
	"token-cleaner-controller": "tokencleaner", "bootstrap-signer-controller": "bootstrapsigner",
	"clusterrole-aggregation-controller": "clusterrole-aggregation", "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
	"serviceaccount-token-controller": "serviceaccount-token", "garbage-collector-controller": "garbagecollector",
	"resourcequota-controller": "resourcequota", "ttl-after-finished-controller": "ttl-after-finished",
	"certificatesigningrequest-cleaner-controller": "csrcleaner", "pod-garbage-collector-controller": "podgc",
	"persistentvolume-protection-controller": "pv-protection", "persistentvolumeclaim-protection-controller": "pvc-protection",
	"storageversion-garbage-collector-controller": storageversions.CollectorSwitch,
}

// otherNames are aliases: a short name for the most common one, and one that stock components use.
var otherNames = map[string]string{"gc": "garbagecollector", "svm": migrations.Switch}

// Switches returns the valid names of a Selection: those that are on by default, and
// those that must be named.
func Switches() (byDefault, named []string) {
	for _, k := range all {
		for _, s := range k.switches {
			if k.build == nil {
				continue
			}
			if slices.Contains(onRequest, s) {
				named = append(named, s)
			} else {
				byDefault = append(byDefault, s)
			}
		}
	}
	return byDefault, named
}

// Selection is a choice of controllers. The zero Selection is all that are on by
// default.
type Selection struct {
	noDefaults bool // the defaults are off
	on, off    map[string]bool
}

// Select reads a list of "*", which is all that are on by default, "name" and "-name".
func Select(list []string) (Selection, error) {
	s := Selection{noDefaults: true, on: map[string]bool{}, off: map[string]bool{}}
	byDefault, named := Switches()
	known := append(append([]string{"*"}, byDefault...), named...)
	for _, text := range list {
		name, off := strings.CutPrefix(strings.TrimSpace(text), "-")
		if short, ok := longNames[name]; ok {
			name = short
		} else if short, ok := otherNames[name]; ok {
			name = short
		}
		switch {
		case !slices.Contains(known, name):
			return s, fmt.Errorf("%q is not in the list of known controllers", text)
		case off:
			s.off[name] = true
		case name == "*":
			s.noDefaults = false
		default:
			s.on[name] = true
		}
	}
	return s, nil
}

// Runs reports whether a controller, or the work of a switch, is chosen. Controllers
// without switches always are.
func (s Selection) Runs(name string) bool {
	byDefault, named := Switches()
	switch {
	case s.off[name]:
		return false
	case s.on[name]:
		return true
	case slices.Contains(named, name):
		return false
	}
	return !s.noDefaults || !slices.Contains(byDefault, name)
}

// Named reports whether a controller, or the work of a switch, is chosen by its name.
func (s Selection) Named(name string) bool { return s.on[name] && !s.off[name] }

// Without returns the selection without those of these controllers that it does not name.
func (s Selection) Without(names ...string) Selection {
	s.off = maps.Clone(s.off)
	if s.off == nil {
		s.off = map[string]bool{}
	}
	for _, name := range names {
		s.off[name] = s.off[name] || !s.on[name]
	}
	return s
}
