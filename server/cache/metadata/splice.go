package metadata

import (
	"strconv"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/codecs/yield"
)

const rvKey = `"resourceVersion":`

// layout is the places in an encoded object at which the read path cuts.
type layout struct {
	head  int // index after `{"kind":...,"apiVersion":...,`; 1 if the object does not start so
	insAt int // place of the resourceVersion
	insTo int // end of an existing resourceVersion; else insAt
	lead  bool
	trail bool // a comma is needed before or after the insertion
}

// measure finds the layout, and reads no further into b than it has to.
func measure(b []byte) (layout, error) {
	l := layout{head: -1, insAt: -1}
	start := scan.Space(b, 0)
	seen := 0
	end := scan.Loose.Members(b, start, func(name scan.Name, at int) (int, bool) {
		switch string(name.In(b)) {
		case "kind", "apiVersion":
			seen++
			end := skip(b, at, 1)
			if seen == 2 && end > 0 && end < len(b) && b[end] == ',' {
				l.head = end + 1
			}
			return end, true
		case "metadata":
			return measureMetadata(b, at, &l), false
		}
		seen += 2
		return skip(b, at, 1), true
	})
	if end < 0 {
		return l, errSyntax
	}
	if l.insAt < 0 {
		return l, errShape
	}
	if l.head < 0 {
		l.head = start + 1
	}
	return l, nil
}

// measureMetadata finds the place after the uid, or that of a resourceVersion before or right after the uid. It returns an
// index behind the bytes that it has read.
func measureMetadata(b []byte, at int, l *layout) int {
	last, uid, members := -1, false, 0
	end := scan.Loose.Members(b, at, func(name scan.Name, at int) (int, bool) {
		switch string(name.In(b)) {
		case "resourceVersion":
			end := skip(b, at, 2)
			if end < 0 {
				return -1, false
			}
			l.insAt, l.insTo = name.At, end
			return end, false
		case "name", "generateName", "namespace", "selfLink":
			if uid {
				return at, false
			}
			members++
			last = skip(b, at, 2)
			return last, true
		case "uid":
			members++
			uid = true
			last = skip(b, at, 2)
			return last, true
		}
		if uid {
			return at, false
		}
		members++
		return skip(b, at, 2), true
	})
	switch {
	case end < 0 || l.insAt >= 0:
	case last >= 0:
		l.insAt, l.insTo, l.lead = last, last, true
	default:
		l.insAt, l.insTo, l.trail = at+1, at+1, members > 0
	}
	return end
}

// Splice returns the object b with its revision as the resourceVersion of its metadata, and a newline behind it. head is
// where the members after kind and apiVersion begin, if the object begins with these two. Splice overwrites room; if room
// is nil, the line gets memory of its own. Splice never yields: its callers may hold locks that others wait for.
func Splice(room, b []byte, revision int64) (line []byte, head int, err error) {
	var text [len(`"-9223372036854775808"`)]byte
	return SpliceVersion(room, b, appendRevision(text[:0], revision))
}

// SpliceVersion is Splice with a resourceVersion that is JSON already; without one if version is nil.
func SpliceVersion(room, b, version []byte) (line []byte, head int, err error) {
	line, head, _, err = splice(room, b, version, func(dst, b []byte) []byte { return append(dst, b...) })
	return line, head, err
}

// splice is SpliceVersion, with a function that appends most of b. at is the index of the version in the line.
func splice(room, b, version []byte, appendMost func(dst, b []byte) []byte) (line []byte, head, at int, err error) {
	l, err := measure(b)
	if err != nil {
		return nil, 0, 0, err
	}
	size := len(b) - (l.insTo - l.insAt) + len(rvKey) + len(version) + 3
	if line = room[:0]; cap(line) < size {
		line = make([]byte, 0, size)
	}
	line = append(line, b[:l.insAt]...)
	if version != nil {
		if l.lead {
			line = append(line, ',')
		}
		line = append(line, rvKey...)
		at = len(line)
		line = append(line, version...)
		if l.trail {
			line = append(line, ',')
		}
	}
	line = appendMost(line, b[l.insTo:])
	return append(line, '\n'), l.head, at, nil
}

func appendRevision(dst []byte, revision int64) []byte {
	return append(strconv.AppendInt(append(dst, '"'), revision, 10), '"')
}

// Draft is a line that lacks its revision. Making one takes as long as Splice, and yields; completing it does not depend on the
// object's size.
type Draft struct {
	line    []byte
	head    int
	at, end int // of the resourceVersion
}

// NewDraft returns the draft of an object whose revision will probably be the given one.
func NewDraft(b []byte, probable int64) (*Draft, error) {
	version := appendRevision(nil, probable)
	line, head, at, err := splice(nil, b, version, yield.Append)
	if err != nil {
		return nil, err
	}
	return &Draft{line: line, head: head, at: at, end: at + len(version)}, nil
}

// Complete returns the results of Splice, or false if the revision has another number of digits than the probable one. The line
// must not be in use yet.
func (d *Draft) Complete(revision int64) (line []byte, head int, ok bool) {
	var text [len(`"-9223372036854775808"`)]byte
	version := appendRevision(text[:0], revision)
	if len(version) != d.end-d.at {
		return nil, 0, false
	}
	copy(d.line[d.at:d.end], version)
	return d.line, d.head, true
}
