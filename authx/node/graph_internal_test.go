package node

import (
	"strconv"
	"testing"
)

// TestClaimsOfDecision: a decision about a Secret of volumes visits the claims of the node's pods or those of the volumes,
// whichever are fewer.
func TestClaimsOfDecision(t *testing.T) {
	const many = 100_000
	g := &Graph{}
	claim := func(i int) Ref { return Ref{Claim, "ns", strconv.Itoa(i)} }
	shared, own := Ref{Secret, "storage", "shared"}, Ref{Secret, "storage", "own"}
	for i := range many {
		g.Bind("pv"+strconv.Itoa(i), claim(i), []Ref{shared, shared})
		g.Bind("again"+strconv.Itoa(i), claim(0), []Ref{own})
	}
	g.SetReferences(Ref{Pod, "ns", "small"}, "n1", []Ref{claim(7)})
	g.SetReferences(Ref{Pod, "ns", "other"}, "n3", []Ref{claim(many)})
	var claims []Ref
	for i := range many {
		claims = append(claims, claim(i))
	}
	g.SetReferences(Ref{Pod, "ns", "large"}, "n2", claims)
	for _, c := range []struct {
		node   string
		secret Ref
		visits int
		want   bool
	}{
		{"n1", shared, 1, true}, {"n3", shared, 1, false}, {"n2", own, 1, true}, {"n1", own, 1, false}, {"n2", Ref{Secret, "a", "b"}, 0, false}, {"n4", shared, 0, false},
	} {
		if fewer, _ := g.claims(c.node, c.secret); len(fewer) != c.visits {
			t.Errorf("%s and %s: %d claims are visited, want %d", c.node, c.secret.Name, len(fewer), c.visits)
		}
		if got := g.Reaches(c.node, c.secret); got != c.want {
			t.Errorf("%s reaches %s: %t", c.node, c.secret.Name, got)
		}
	}
	for i := range many {
		g.Unbind("pv" + strconv.Itoa(i))
		g.Unbind("again" + strconv.Itoa(i))
	}
	g.Release(Ref{Pod, "ns", "small"})
	g.Release(Ref{Pod, "ns", "other"})
	g.Release(Ref{Pod, "ns", "large"})
	if n := len(g.held) + len(g.reach) + len(g.behind) + len(g.through); n > 0 {
		t.Errorf("%d entries are left", n)
	}
}
