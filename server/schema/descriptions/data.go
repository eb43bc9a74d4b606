package descriptions

import (
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

//go:generate go test -run TestDataIsUpToDate -update

// Lines of data/descriptions.txt have the name of a type, the source of the description (says: the type, published: an OpenAPI definition),
// the JSON name of a field or nothing, and the quoted text, or the number of the earlier line with the same
// text. Sources link the packages that they come from: see TestDataIsUpToDate.
//
//go:embed data/descriptions.txt.gz
var packed string

const sourceDoc, sourcePublished = "says", "published"

// embedded reads the descriptions of types in their source, and their published ones, by name.
func embedded() (documented, published map[string]described, err error) {
	zr, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(zr)
	if err != nil {
		return nil, nil, err
	}
	return parse(string(text))
}

func parse(data string) (documented, published map[string]described, err error) {
	documented, published = map[string]described{}, map[string]described{}
	by := map[string]map[string]described{sourceDoc: documented, sourcePublished: published}
	var texts []string
	for line := range strings.Lines(data) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
		if len(parts) < 4 || by[parts[1]] == nil {
			return nil, nil, fmt.Errorf("line %d: %q", len(texts)+1, line)
		}
		text, err := strconv.Unquote(parts[3])
		if err != nil {
			number, err := strconv.Atoi(parts[3])
			if err != nil || number < 1 || number > len(texts) {
				return nil, nil, fmt.Errorf("line %d: %q", len(texts)+1, line)
			}
			text = texts[number-1]
		}
		texts = append(texts, text)
		d, ok := by[parts[1]][parts[0]]
		if !ok {
			d.fields = map[string]string{}
		}
		if parts[2] == "" {
			d.text = text
		} else {
			d.fields[parts[2]] = text
		}
		by[parts[1]][parts[0]] = d
	}
	return documented, published, nil
}
