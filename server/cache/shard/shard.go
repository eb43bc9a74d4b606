// Package shard holds shard selectors: ranges of hashes of the UID or of the namespace of objects, by which several clients
// share the objects of a resource.
package shard

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"sort"
	"strconv"

	apisharding "k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apiserver/pkg/sharding"
)

// maxText limits the length of a selector. Its parser is slow, and a range has some eighty bytes.
const maxText = 16 << 10

const (
	ofNamespace = "object.metadata.namespace"
	pastLast    = "0x10000000000000000" // 2^64, as the end of a range
)

// Selector selects objects by the hash of one of their fields.
type Selector struct {
	text      string // with canonical spaces and quotes
	namespace bool   // the namespace is hashed, not the UID
	spans     []span // sorted; none touches another
}

// span is a range of hashes. Both ends are in it.
type span struct{ first, last uint64 }

// Parse reads a selector. Errors are texts of a stock server, except that of a selector which is too long.
func Parse(text string) (*Selector, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("it has %d bytes, and the most is %d", len(text), maxText)
	}
	parsed, err := sharding.Parse(text)
	if err != nil {
		return nil, err
	}
	s := &Selector{text: parsed.String()}
	for _, r := range parsed.Requirements() {
		s.namespace = r.Key == ofNamespace
		of, err := spanOf(r)
		if err != nil {
			return nil, err
		}
		s.spans = append(s.spans, of)
	}
	s.merge()
	return s, nil
}

// spanOf reads the ends of a range, of which the parser has checked the form and the order.
func spanOf(r apisharding.ShardRangeRequirement) (of span, err error) {
	if of.first, err = strconv.ParseUint(r.Start, 0, 64); err != nil {
		return of, err
	}
	if r.End == pastLast {
		return span{of.first, 1<<64 - 1}, nil
	}
	end, err := strconv.ParseUint(r.End, 0, 64)
	of.last = end - 1
	return of, err
}

// merge sorts the spans and joins those that overlap or touch, so that a search takes the logarithm of their number.
func (s *Selector) merge() {
	sort.Slice(s.spans, func(i, j int) bool { return s.spans[i].first < s.spans[j].first })
	out := s.spans[:1]
	for _, next := range s.spans[1:] {
		if end := &out[len(out)-1]; end.last == 1<<64-1 || next.first <= end.last+1 {
			end.last = max(end.last, next.last)
		} else {
			out = append(out, next)
		}
	}
	s.spans = slices.Clip(out)
}

// OfNamespace reports whether objects are selected by their namespace, and not by their UID.
func (s *Selector) OfNamespace() bool { return s.namespace }

// Selects reports whether the selector selects the objects whose field has a value.
func (s *Selector) Selects(value string) bool {
	h := fnv.New64a()
	_, _ = io.WriteString(h, value) // a hash takes everything
	sum := h.Sum64()
	_, found := slices.BinarySearchFunc(s.spans, sum, func(of span, sum uint64) int {
		switch {
		case of.last < sum:
			return -1
		case of.first > sum:
			return 1
		}
		return 0
	})
	return found
}

// String returns the text that answers show.
func (s *Selector) String() string { return s.text }
