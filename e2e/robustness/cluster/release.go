//go:build unix

package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

// Release is the minor release of Kubernetes that servers emulate: 36 is 1.36.
type Release int

// The releases that servers can emulate (--emulated-version).
const (
	Oldest Release = 32
	Newest Release = 36
)

// ParseRelease parses a release as "1.36".
func ParseRelease(text string) (Release, error) {
	if minor, ok := strings.CutPrefix(text, "1."); ok {
		if n, err := strconv.Atoi(minor); err == nil && Release(n) >= Oldest && Release(n) <= Newest {
			return Release(n), nil
		}
	}
	return 0, fmt.Errorf("release %q: want one from %s to %s", text, Oldest, Newest)
}

// String returns the release as "1.36".
func (r Release) String() string { return fmt.Sprintf("1.%d", int(r)) }

// More returns the flags that SetArgs set last.
func (c *Cluster) More() []string {
	n := c.nodes[0]
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.more
}

// SetArgs sets further flags of the servers that start from now on, such as those of another release.
func (c *Cluster) SetArgs(args []string) {
	for _, n := range c.nodes {
		n.mu.Lock()
		n.more = args
		n.mu.Unlock()
	}
}
