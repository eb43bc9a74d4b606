package remote

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"sort"
)

// placed is the place of an object in a Spool.
type placed struct {
	name    string
	section int
	at      int64
	size    int
}

// Ordered returns the objects of all sections, sorted bytewise by the string that name returns. Memory holds that
// string and some 48 bytes for each object, which are bounded together, and one object. Each object is valid until
// the next.
func (s *Spool) Ordered(name func(Object) (string, error)) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		places, err := s.places(name)
		if err != nil {
			yield(Object{}, err)
			return
		}
		sort.SliceStable(places, func(i, j int) bool { return places[i].name < places[j].name })
		var data []byte
		for _, p := range places {
			data = slices.Grow(data[:0], p.size)[:p.size]
			var o Object
			_, err := s.file.ReadAt(data, p.at)
			if err == nil {
				section := &s.sections[p.section]
				s.keys.stream(section.stream, p.at-section.from).XORKeyStream(data, data)
				o, err = item(section.Resource, data)
			} else {
				err = fmt.Errorf("reading the collected objects: %w", err)
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

func (s *Spool) places(name func(Object) (string, error)) (all []placed, err error) {
	var objects, held int64
	for _, section := range s.sections {
		objects += section.Listed.Objects
	}
	if objects*placedBytes > s.index {
		return nil, s.tooMany()
	}
	all = make([]placed, 0, objects)
	var size [binary.MaxVarintLen64]byte
	for i, section := range s.sections {
		at := section.from
		for o, err := range s.Objects(section) {
			if err != nil {
				return nil, err
			}
			n, err := name(o)
			if err != nil {
				return nil, err
			}
			if held += int64(placedBytes + len(n)); held > s.index {
				return nil, s.tooMany()
			}
			// Objects in the file have their kind and version, so item returned the text as it is stored.
			at += int64(binary.PutUvarint(size[:], uint64(len(o.JSON))))
			all = append(all, placed{n, i, at, len(o.JSON)})
			at += int64(len(o.JSON))
		}
	}
	return all, nil
}

// placedBytes is the memory for each object in addition to its name.
const placedBytes = 48

func (s *Spool) tooMany() error {
	return &BoundError{Path: "/", Bound: fmt.Sprintf("the names of all objects take more than %d bytes of memory", s.index)}
}
