package protobuf

import (
	"encoding/binary"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxDepth is the limit that the other wire forms have.
const maxDepth = 10000

// recursive reports whether messages of an object's type can nest without bound:
// the generated decoder would follow them until the stack is full. Schemas of
// custom resources are the only such type.
func recursive(obj runtime.Object) bool {
	switch obj.(type) {
	case *apiextensionsv1.CustomResourceDefinition, *apiextensionsv1.CustomResourceDefinitionList:
		return true
	}
	return false
}

// tooDeep reports whether data nests messages deeper than maxDepth. Without a schema
// any bytes that read as a message are taken for one; a level takes two bytes at
// least, so that short fields need not be followed.
func tooDeep(data []byte) bool {
	type level struct {
		data  []byte
		depth int
	}
	open := []level{{data, 0}}
	for len(open) > 0 {
		l := open[len(open)-1]
		open = open[:len(open)-1]
		if l.depth > maxDepth {
			return true
		}
		for rest := l.data; len(rest) > 0; {
			var field []byte
			var ok bool
			if field, rest, ok = next(rest); !ok {
				break
			}
			if l.depth+1+len(field)/2 > maxDepth {
				open = append(open, level{field, l.depth + 1})
			}
		}
	}
	return false
}

// next splits the first field off data; field is its content if it is
// length-delimited.
func next(data []byte) (field, rest []byte, ok bool) {
	tag, n := binary.Uvarint(data)
	if n <= 0 {
		return nil, nil, false
	}
	data = data[n:]
	switch tag & 7 {
	case 0:
		if _, n = binary.Uvarint(data); n <= 0 {
			return nil, nil, false
		}
		return nil, data[n:], true
	case 1, 5:
		if n = 8 - int(tag&4); len(data) < n {
			return nil, nil, false
		}
		return nil, data[n:], true
	case 2:
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return nil, nil, false
		}
		end := n + int(size)
		return data[n:end], data[end:], true
	}
	return nil, nil, false
}
