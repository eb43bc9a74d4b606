package yaml

import (
	"bytes"
	stdjson "encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	goyaml "sigs.k8s.io/yaml/goyaml.v2"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/json/scan"
)

// The YAML decoder takes some 400 bytes and one or two microseconds for each value, and aliases can make a
// document far larger. So values are counted first, with the expansion of aliases.
const (
	leastValues = 400_000
	perValue    = 256
)

// fits refuses a document that takes too much to read, with a 413. It gives how many
// values there are at most.
func fits(data []byte) (values int, err error) {
	most, expands := max(leastValues, len(data)/8), 4*max(budget.DefaultBody, len(data))
	if values = marks(data); values > most && stdjson.Valid(data) {
		values = marksInJSON(data)
	}
	if values > most {
		if budget.TooDeep(data) {
			return values, apierrors.NewBadRequest("yaml: exceeded max depth of 10000")
		}
		return values, budget.TooMuch("the YAML in the body has more than %d values", most)
	}
	if bytes.IndexByte(data, '*') < 0 || bytes.IndexByte(data, '&') < 0 || stdjson.Valid(data) {
		return values, nil
	}
	var tree any
	if goyaml.Unmarshal(data, &tree) != nil {
		return values, nil // the decoder returns the error
	}
	if expanded(tree, expands) < 0 {
		return values, budget.TooMuch("the YAML in the body stands for more than %d bytes", expands)
	}
	return values, nil
}

// marks counts the characters after which a value can begin, including those in text.
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
