package transfer

import (
	"strings"

	"github.com/rowlock/rowlock/server/kinds"
)

// Why something is left out, as reports call it.
const (
	leftRanges        = "ranges of service addresses and node ports (made anew from the Services)"
	leftMasters       = "leases of the old API servers"
	leftHealth        = "marks of the old store itself"
	leftK3s           = "what k3s keeps for itself: its keys and certificates (taken along by --take-along), its members of etcd"
	leftEndpoints     = "endpoints of the old API servers (the new ones write their own)"
	leftEvents        = "events (taken along with --events)"
	leftOutsidePrefix = "keys outside the prefix"
	leftUnknown       = "keys of resources that are not served here"
	leftNotJSON       = "objects of other API servers (custom resources are JSON, these are not)"
)

// keptBelow are the prefixes of paths whose contents are internal to a server, in a stock server and in the
// additions of k3s and kine.
var keptBelow = map[string]string{
	"ranges/":           leftRanges,
	"masterleases/":     leftMasters,
	"peerserverleases/": leftMasters,
}

// keptAt are such paths themselves.
var keptAt = map[string]string{
	"health":          leftHealth, // written by kine to see that the database takes writes
	"compact_rev_key": leftHealth,
}

// keptKeys are such keys outside the prefix.
var keptKeys = map[string]string{
	"compact_rev_key":  leftHealth, // of a stock server and of kine: how far the log is compacted
	"/compact_rev_key": leftHealth,
}

// keptKeysBelow are the beginnings of keys outside the prefix by which k3s, and rke2, keep
// their own objects in the store of the cluster.
var keptKeysBelow = map[string]string{
	"/bootstrap/": leftK3s, // encrypted with the token by which servers join
	"k3s/":        leftK3s,
	"rke2/":       leftK3s,
}

const (
	identityLabel  = "apiserver.kubernetes.io/identity"
	identityServer = "kube-apiserver"
)

// keptPath returns the reason why the value at a path is left out; "" if it is not.
func keptPath(path string) string {
	if why := keptAt[path]; why != "" {
		return why
	}
	for below, why := range keptBelow {
		if strings.HasPrefix(path, below) {
			return why
		}
	}
	return ""
}

// keptOutside returns the reason why the value at a key outside the prefix is left out.
func keptOutside(key string) string {
	if why := keptKeys[key]; why != "" {
		return why
	}
	for below, why := range keptKeysBelow {
		if strings.HasPrefix(key, below) {
			return why
		}
	}
	return leftOutsidePrefix
}

// keptObject returns the reason why an object is left out by its key.
func (r *Reader) keptObject(at located) string {
	k := at.key
	switch {
	case k.Resource == eventStorage && !r.options.Events:
		return leftEvents
	case k.Namespace == "default" && k.Name == "kubernetes" && (k.Resource == "endpoints" || k.Resource == "endpointslices.discovery.k8s.io"):
		return leftEndpoints
	}
	return ""
}

// keptInside returns why an object is left out because of its contents: the lease of a server that will not
// be there would mislead others.
func keptInside(at located, obj kinds.Object) string {
	if at.key.Resource == leaseStorage && at.key.Namespace == "kube-system" && obj.GetLabels()[identityLabel] == identityServer {
		return leftMasters
	}
	return ""
}
