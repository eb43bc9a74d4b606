// Package million makes a large cluster of a given size: namespaces, nodes with their leases, ReplicaSets and
// Pods of about 4 KB, as a backup for `rowlock store restore`.
//
// The same Shape gives the same bytes on every machine; objects are as a real server stores them, so that
// none is rewritten or garbage-collected when it is loaded; and no object depends on a missing one.
package million

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Shape defines the size of the cluster, and with Seed one cluster of that size.
type Shape struct {
	Pods int
	Seed uint64 // names, addresses and digests follow from it
}

// The sizes of groups of Pods.
const (
	podsOfANamespace  = 200
	podsOfANode       = 10
	podsOfAReplicaSet = 20
)

// TierLabel selects a tenth of all Pods.
const TierLabel = "tier=edge"

// tiers are of equal size; TierLabel names the first.
var tiers = [...]string{"edge", "frontend", "backend", "cache", "queue", "batch", "search", "metrics", "storage", "control"}

// epoch is the time at which the cluster was made. It is fixed, so that a Shape always makes the same file.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Namespaces returns the number of namespaces.
func (s Shape) Namespaces() int { return atLeastOne(s.Pods / podsOfANamespace) }

// Nodes returns the number of nodes; each has a Lease.
func (s Shape) Nodes() int { return atLeastOne(s.Pods / podsOfANode) }

// ReplicaSets returns the number of ReplicaSets. None spans two namespaces.
func (s Shape) ReplicaSets() int { return (s.Pods + podsOfAReplicaSet - 1) / podsOfAReplicaSet }

func atLeastOne(n int) int { return max(1, n) }

// Namespace returns the name of a namespace.
func (s Shape) Namespace(i int) string { return fmt.Sprintf("team-%05d", i) }

// Node returns the name of a node.
func (s Shape) Node(i int) string { return fmt.Sprintf("node-%06d.zone-%d.example", i, i%3) }

// NamespaceOf returns the number of the namespace that a Pod is in.
func (s Shape) NamespaceOf(pod int) int { return min(pod/podsOfANamespace, s.Namespaces()-1) }

// NodeOf returns the number of the node that a Pod runs on. Pods next to each other run on different nodes.
func (s Shape) NodeOf(pod int) int { return pod * 7919 % s.Nodes() }

// PodName returns the name of a Pod, as its ReplicaSet chose it.
func (s Shape) PodName(i int) string {
	own := suffix(s.chance(ofPods, i), 5)
	for j := i - i%podsOfAReplicaSet; j < i; j++ {
		if suffix(s.chance(ofPods, j), 5) == own { // one or two of a million Pods
			own += letters[i%podsOfAReplicaSet:][:1]
			break
		}
	}
	return s.replicaSetName(i/podsOfAReplicaSet) + "-" + own
}

func (s Shape) app(replicaSet int) string { return fmt.Sprintf("app-%04d", replicaSet%5000) }

func (s Shape) replicaSetName(i int) string { return s.app(i) + "-" + s.hash(i) }

// hash returns the pod-template-hash of a ReplicaSet.
func (s Shape) hash(i int) string { return suffix(s.chance(ofReplicaSets, i), 10) }

// The streams of random numbers: each kind of object has its own.
const (
	ofPods = iota
	ofReplicaSets
	ofNodes
	ofLeases
	ofNamespaces
)

// chance returns the source of the random parts of one object.
func (s Shape) chance(of, i int) *rand.Rand {
	return rand.New(rand.NewPCG(s.Seed, uint64(of)<<48|uint64(i)))
}

// letters are the letters of random names in Kubernetes.
const letters = "bcdfghjklmnpqrstvwxz2456789"

// suffix returns a random name in the form of Kubernetes.
func suffix(r *rand.Rand, n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = letters[r.IntN(len(letters))]
	}
	return string(out)
}

func uid(r *rand.Rand) string {
	a, b := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, 0x8000|b>>48&0x3fff, b&0xffffffffffff)
}

func digest(r *rand.Rand) string {
	return fmt.Sprintf("%016x%016x%016x%016x", r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64())
}
