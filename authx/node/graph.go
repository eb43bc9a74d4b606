package node

import (
	"slices"
	"sync"
)

// Kind is the kind of object to which a reference points.
type Kind uint8

const (
	Pod Kind = iota
	Secret
	ConfigMap
	Claim
	Volume
	Account
	Attachment
	ResourceClaim
	Slice
	PodCertificate
)

// Ref names an object; the namespace is "" for kinds without.
type Ref struct {
	Kind            Kind
	Namespace, Name string
}

// Graph knows which objects the pods of which node refer to. The zero value is empty.
type Graph struct {
	mu sync.RWMutex
	// held are, by holder (a pod, an attachment), the objects that it makes readable for its node.
	held map[Ref]holder
	// reach counts, by object, the holders of each node.
	reach map[Ref]map[string]int
	// behind are, by volume, the claim to which it is bound and its own references.
	behind map[Ref]volume
	// through are, by object, the volumes that lead to it.
	through map[Ref]map[Ref]bool
}

type holder struct {
	node string
	refs []Ref
}

type volume struct {
	claim Ref
	refs  []Ref
}

// SetReferences records that an object of a node refers to refs, and replaces its earlier references; the node may
// read the object itself too. A node "" holds nothing.
func (g *Graph) SetReferences(by Ref, node string, refs []Ref) {
	refs = append(refs, by)
	g.mu.Lock()
	defer g.mu.Unlock()
	if old, ok := g.held[by]; ok && old.node == node && slices.Equal(old.refs, refs) {
		return
	}
	g.release(by)
	if node == "" {
		return
	}
	if g.held == nil {
		g.held, g.reach = map[Ref]holder{}, map[Ref]map[string]int{}
	}
	g.held[by] = holder{node, refs}
	for _, r := range refs {
		if g.reach[r] == nil {
			g.reach[r] = map[string]int{}
		}
		g.reach[r][node]++
	}
}

// Release removes the references of an object.
func (g *Graph) Release(by Ref) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(by)
}

func (g *Graph) release(by Ref) {
	h, ok := g.held[by]
	if !ok {
		return
	}
	delete(g.held, by)
	for _, r := range h.refs {
		nodes := g.reach[r]
		if nodes[h.node]--; nodes[h.node] <= 0 {
			delete(nodes, h.node)
		}
		if len(nodes) == 0 {
			delete(g.reach, r)
		}
	}
}

// Bind records to which claim a volume is bound, and the volume's references.
func (g *Graph) Bind(volumeName string, claim Ref, refs []Ref) {
	g.mu.Lock()
	defer g.mu.Unlock()
	by := Ref{Kind: Volume, Name: volumeName}
	g.unbind(by)
	if g.behind == nil {
		g.behind, g.through = map[Ref]volume{}, map[Ref]map[Ref]bool{}
	}
	g.behind[by] = volume{claim, refs}
	for _, r := range refs {
		if g.through[r] == nil {
			g.through[r] = map[Ref]bool{}
		}
		g.through[r][by] = true
	}
}

// Unbind forgets a volume.
func (g *Graph) Unbind(volumeName string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unbind(Ref{Kind: Volume, Name: volumeName})
}

func (g *Graph) unbind(by Ref) {
	for _, r := range g.behind[by].refs {
		delete(g.through[r], by)
		if len(g.through[r]) == 0 {
			delete(g.through, r)
		}
	}
	delete(g.behind, by)
}

// Reset forgets everything.
func (g *Graph) Reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.held)
	clear(g.reach)
	clear(g.behind)
	clear(g.through)
}

// Reaches reports whether a path leads from a node to an object: by its pods and
// attachments, or by a volume bound to a claim of its pods.
func (g *Graph) Reaches(node string, r Ref) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.reach[r][node] > 0 {
		return true
	}
	if v, ok := g.behind[r]; ok && g.reach[v.claim][node] > 0 {
		return true
	}
	for by := range g.through[r] {
		if g.reach[g.behind[by].claim][node] > 0 {
			return true
		}
	}
	return false
}
