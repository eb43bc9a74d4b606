package packing

import (
	"fmt"

	"github.com/rowlock/rowlock/server/cache/dictionary"
)

// Codec packs the bytes of one form, of the objects of one storage.
type Codec struct{ *dictionary.Dictionary }

// MustUnpack appends a packed form, which never comes from a file. Packing has seen each come back.
func (p *Codec) MustUnpack(dst, packed []byte) []byte {
	dst, err := p.Unpack(dst, packed)
	if err != nil {
		panic(fmt.Sprintf("memory of a packed form was changed: %v", err))
	}
	return dst
}

// Learner is how the bytes of one form are packed: by what dictionary, and how well.
type Learner struct {
	With  *Codec
	first yield // of the first objects
	since yield // of those after them
}

// yield is what packing some objects gave.
type yield struct{ objects, plain, packed int }

func (y *yield) add(plain, packed int) {
	y.objects++
	y.plain += plain
	y.packed += packed
}

// Bounds of a dictionary.
const (
	Samples    = 16   // of how many objects one is made, at most
	judged     = 1000 // by how many it is judged
	SampleEach = 8    // of how many Protobuf forms that come by one is a sample
	stale      = 1.5  // where they take so many times what the first took, another is made
)

// Note takes down what packing an object gave. When the objects have come to look
// different, the dictionary is forgotten.
func (l *Learner) Note(plain, packed int) {
	if l.first.objects < judged {
		l.first.add(plain, packed)
		return
	}
	if l.since.add(plain, packed); l.since.objects < judged {
		return
	}
	was, is := float64(l.first.packed)/float64(l.first.plain), float64(l.since.packed)/float64(l.since.plain)
	if l.since = (yield{}); is > was*stale {
		*l = Learner{}
	}
}

// Learn makes a dictionary if there is none. get gives the bytes of an object, or nil.
func (l *Learner) Learn(n int, get func(i int) []byte) *Codec {
	if l.With != nil {
		return l.With
	}
	samples := make([][]byte, 0, Samples)
	for i := range Samples {
		if sample := get(i * n / Samples); sample != nil {
			samples = append(samples, sample)
		}
	}
	if d := dictionary.New(samples); d != nil {
		*l = Learner{With: &Codec{d}}
	}
	return l.With
}
