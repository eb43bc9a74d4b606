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
	// reach counts, by node, the holders of each object.
	reach map[string]*reached
	// behind are, by volume, the claim to which it is bound and its own references.
	behind map[Ref]volume
	// through counts, by object, the volumes that refer to it, by their claims.
	through map[Ref]map[Ref]int32
}

type holder struct {
	node string
	refs []Ref
}

// reached counts the holders of the objects that a node reaches; those of claims apart.
type reached struct {
	claims, others map[Ref]int32
}

func (r *reached) of(kind Kind) map[Ref]int32 {
	switch {
	case r == nil:
		return nil
	case kind == Claim:
		return r.claims
	}
	return r.others
}

// take removes one from the count of an element.
func take(counts map[Ref]int32, r Ref) {
	if counts[r]--; counts[r] <= 0 {
		delete(counts, r)
	}
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
		g.held, g.reach = map[Ref]holder{}, map[string]*reached{}
	}
	g.held[by] = holder{node, refs}
	all := g.reach[node]
	if all == nil {
		all = &reached{claims: map[Ref]int32{}, others: map[Ref]int32{}}
		g.reach[node] = all
	}
	for _, r := range refs {
		all.of(r.Kind)[r]++
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
	all := g.reach[h.node]
	for _, r := range h.refs {
		take(all.of(r.Kind), r)
	}
	if len(all.claims)+len(all.others) == 0 {
		delete(g.reach, h.node)
	}
}

// Bind records to which claim a volume is bound, and the volume's references.
func (g *Graph) Bind(volumeName string, claim Ref, refs []Ref) {
	g.mu.Lock()
	defer g.mu.Unlock()
	by := Ref{Kind: Volume, Name: volumeName}
	g.unbind(by)
	if g.behind == nil {
		g.behind, g.through = map[Ref]volume{}, map[Ref]map[Ref]int32{}
	}
	g.behind[by] = volume{claim, refs}
	for _, r := range refs {
		if g.through[r] == nil {
			g.through[r] = map[Ref]int32{}
		}
		g.through[r][claim]++
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
		take(g.through[r], g.behind[by].claim)
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
	if g.reach[node].of(r.Kind)[r] > 0 {
		return true
	}
	if v, ok := g.behind[r]; ok && g.reach[node].of(Claim)[v.claim] > 0 {
		return true
	}
	fewer, more := g.claims(node, r)
	for claim := range fewer {
		if more[claim] > 0 {
			return true
		}
	}
	return false
}

// claims returns the claims of a node's pods, and those whose volumes refer to an object: the smaller set first, because
// a decision visits that one. Storage classes give one Secret to all of their volumes.
func (g *Graph) claims(node string, r Ref) (fewer, more map[Ref]int32) {
	fewer, more = g.reach[node].of(Claim), g.through[r]
	if len(fewer) > len(more) {
		return more, fewer
	}
	return fewer, more
}
