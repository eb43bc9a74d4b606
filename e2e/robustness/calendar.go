//go:build unix

package main

import (
	"math/rand/v2"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
)

// drawn is the value of -release that gives each round a release of its own.
const drawn = "drawn"

// calendar chooses the release of the servers in each round. Every second round has the newest release; the others alternate between the
// oldest and one in the middle. So the servers are upgraded and downgraded by any number of releases: all of them work with one database.
type calendar struct {
	only  cluster.Release // 0: releases are drawn
	rand  *rand.Rand
	turns int
}

func newCalendar(text string, seed uint64) (*calendar, error) {
	c := &calendar{rand: rand.New(rand.NewPCG(seed, 33)), turns: int(seed % 4)}
	if text == drawn {
		return c, nil
	}
	var err error
	c.only, err = cluster.ParseRelease(text)
	return c, err
}

// next returns the release of the next round.
func (c *calendar) next() cluster.Release {
	turn := c.turns
	c.turns++
	switch between := int(cluster.Newest - cluster.Oldest - 1); {
	case c.only != 0:
		return c.only
	case turn%2 == 1:
		return cluster.Newest
	case turn%4 == 0:
		return cluster.Oldest
	default:
		return cluster.Oldest + 1 + cluster.Release(c.rand.IntN(between))
	}
}

// networkArgs are flags of all servers: few addresses and ports, so that a server that allocates one twice is soon found.
var networkArgs = []string{"--service-cluster-ip-range=10.96.0.0/26", "--service-node-port-range=30000-30063"}

// releaseArgs returns the flags of servers of a release, which enable features and versions that are off by default, such as streaming
// lists in one of the releases. 1.33 and 1.34 have no storage migrations.
func releaseArgs(r cluster.Release) []string {
	args := []string{"--emulated-version=" + r.String(), "--feature-gates=WatchList=true"}
	if r == cluster.Oldest {
		args = append(args, "--runtime-config=storagemigration.k8s.io/v1alpha1=true")
	}
	if r > cluster.Oldest {
		args = append(args, "--feature-gates=CoordinatedLeaderElection=true", "--runtime-config=coordination.k8s.io/v1beta1=true")
	}
	if r >= 35 {
		args = append(args, "--runtime-config=storagemigration.k8s.io/v1beta1=true")
	}
	if r >= 34 {
		args = append(args, "--runtime-config=resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true")
	}
	if r == cluster.Newest {
		args = append(args, "--feature-gates=GenericWorkload=true,ShardedListAndWatch=true", "--runtime-config=scheduling.k8s.io/v1alpha2=true")
	}
	return args
}
