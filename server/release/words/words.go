// Package words has the documentation of API types and their fields in the oldest release, where it differs
// from that of the linked types. Servers of later releases have the texts of the types: they are binaries of
// the newest release (see release.Version.Emulated).
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

//go:embed data/words.txt.gz
var packed string

// Words are the differing texts of a release, by the names of types.
type Words map[string]map[string]string

// Of reads the words of a release. They take a few hundred kilobytes, so callers
// should not keep them.
func Of(v release.Version) (Words, error) {
	w := Words{}
	if v.Emulated() {
		return w, nil
	}
	zr, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading the words of the oldest release: %w", err)
	}
	text, err := io.ReadAll(zr)
	if err != nil {
		return nil, fmt.Errorf("reading the words of the oldest release: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(parts) < 3 {
			return nil, fmt.Errorf("reading the words of the oldest release: %q", line)
		}
		text, err := strconv.Unquote(parts[2])
		if err != nil {
			return nil, fmt.Errorf("reading the words of the oldest release: %w", err)
		}
		if w[parts[0]] == nil {
			w[parts[0]] = map[string]string{}
		}
		w[parts[0]][parts[1]] = text
	}
	return w, nil
}

// Text returns the release's documentation of a field, or of the type for "", whose present documentation is
// text.
func (w Words) Text(name, field, text string) string {
	if was, ok := w[name][field]; ok {
		return was
	}
	return text
}
