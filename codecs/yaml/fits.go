package yaml

import (
	"bytes"
	stdjson "encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	goyaml "sigs.k8s.io/yaml/goyaml.v2"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/json/scan"
)

// The reader of YAML takes some 400 bytes and a microsecond or two for each value, and
// aliases let a document stand for a far larger one. So values are counted before, and
// what aliases stand for is measured.
const (
	maxValues   = 400_000
	maxExpanded = 12 << 20
	perValue    = 256
)

// fits refuses a document that takes too much to read, with a 413. It gives how many
// values there are at most.
func fits(data []byte) (values int, err error) {
	if values = marks(data); values > maxValues && stdjson.Valid(data) {
		values = marksInJSON(data)
	}
	if values > maxValues {
		if budget.TooDeep(data) {
			return values, apierrors.NewBadRequest("yaml: exceeded max depth of 10000")
		}
		return values, budget.TooMuch("the YAML in the body has more than %d values", maxValues)
	}
	if bytes.IndexByte(data, '*') < 0 || bytes.IndexByte(data, '&') < 0 || stdjson.Valid(data) {
		return values, nil
	}
	var tree any
	if goyaml.Unmarshal(data, &tree) != nil {
		return values, nil // whoever reads it next says why
	}
	if expanded(tree, maxExpanded) < 0 {
		return values, budget.TooMuch("the YAML in the body stands for more than %d bytes", maxExpanded)
	}
	return values, nil
}

// marks counts what a value can begin after. Text that has such marks counts too.
func marks(data []byte) (n int) {
	for _, mark := range []byte("\n,[{") {
		n += bytes.Count(data, []byte{mark})
	}
	return n
}

// marksInJSON is marks for a document that is JSON, text left out.
func marksInJSON(data []byte) (n int) {
	for at := range scan.Tokens(data) {
		switch data[at] {
		case '{', '[', ',', ':':
			n++
		}
	}
	return n
}

// expanded takes the size of a tree from left, which is negative when that is too much.
func expanded(tree any, left int) int {
	left -= 4
	switch tree := tree.(type) {
	case string:
		left -= len(tree)
	case []any:
		for _, e := range tree {
			if left = expanded(e, left); left < 0 {
				return left
			}
		}
	case map[any]any:
		for k, e := range tree {
			if left = expanded(e, expanded(k, left)); left < 0 {
				return left
			}
		}
	}
	return left
}
