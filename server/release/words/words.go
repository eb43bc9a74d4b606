// Package words has what older releases said of API types and their fields, where the types that the
// server is built with say something else.
package words

import (
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rowlock/rowlock/server/release"
)

//go:generate go run ./gen data

//go:embed data/words.txt.gz
var packed string

// Words are what a release said otherwise, by the names of types.
type Words map[string]map[string]string

// Of reads the words of a release. They take a few hundred kilobytes, so callers
// should not keep them.
func Of(v release.Version) (Words, error) {
	w := Words{}
	if v >= release.Newest {
		return w, nil
	}
	zr, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading the words of older releases: %w", err)
	}
	text, err := io.ReadAll(zr)
	if err != nil {
		return nil, fmt.Errorf("reading the words of older releases: %w", err)
	}
	until := map[string]int{}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
		if len(parts) < 4 {
			return nil, fmt.Errorf("reading the words of older releases: %q", line)
		}
		minor, err := strconv.Atoi(parts[2])
		if err != nil {
			return nil, fmt.Errorf("reading the words of older releases: %w", err)
		}
		key := parts[0] + " " + parts[1]
		if minor <= v.Minor() || until[key] != 0 && until[key] < minor {
			continue // what came later, or before
		}
		said, err := strconv.Unquote(parts[3])
		if err != nil {
			return nil, fmt.Errorf("reading the words of older releases: %w", err)
		}
		if w[parts[0]] == nil {
			w[parts[0]] = map[string]string{}
		}
		w[parts[0]][parts[1]], until[key] = said, minor
	}
	return w, nil
}

// Said is what the release says of a field, or of the type for "", where the type says text.
func (w Words) Said(name, field, text string) string {
	if was, ok := w[name][field]; ok {
		return was
	}
	return text
}
