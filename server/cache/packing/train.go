package packing

import (
	"fmt"

	"github.com/rowlock/rowlock/server/cache/dictionary"
)

// Codec packs one form of the objects of one storage.
type Codec struct{ *dictionary.Dictionary }

// MustUnpack appends a packed form that comes from no file. Pack has verified that it can be unpacked.
func (p *Codec) MustUnpack(dst, packed []byte) []byte {
	dst, err := p.Unpack(dst, packed)
	if err != nil {
		panic(fmt.Sprintf("memory of a packed form was changed: %v", err))
	}
	return dst
}

// Trainer has the codec of one form, and measures how well it packs.
type Trainer struct {
	With  *Codec
	first packRatio // of the first objects
	since packRatio // of those after them
}

// packRatio is the sizes of some objects before and after packing.
type packRatio struct{ objects, plain, packed int }

func (y *packRatio) add(plain, packed int) {
	y.objects++
	y.plain += plain
	y.packed += packed
}

// Bounds of a dictionary.
const (
	Samples    = 16   // the most samples of a dictionary
	judged     = 1000 // number of objects that are measured
	SampleEach = 8    // one in this many Protobuf forms is a sample
	stale      = 1.5  // a dictionary is replaced if later objects take this many times as much as the first
)

// Measure measures the packing of an object. Once new objects pack much worse than the first, it drops the dictionary.
func (l *Trainer) Measure(plain, packed int) {
	if l.first.objects < judged {
		l.first.add(plain, packed)
		return
	}
	if l.since.add(plain, packed); l.since.objects < judged {
		return
	}
	was, is := float64(l.first.packed)/float64(l.first.plain), float64(l.since.packed)/float64(l.since.plain)
	if l.since = (packRatio{}); is > was*stale {
		*l = Trainer{}
	}
}

// Train makes a dictionary if there is none. get returns the bytes of an object, or nil.
func (l *Trainer) Train(n int, get func(i int) []byte) *Codec {
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
		*l = Trainer{With: &Codec{d}}
	}
	return l.With
}
