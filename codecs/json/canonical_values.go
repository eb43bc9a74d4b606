package json

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/codecs/quantities"
)

// checkAny checks a value of no type.
func checkAny(c *checking, i int) int {
	switch c.at(i) {
	case '{':
		return c.sortedObject(i, func(string) checker { return checkAny })
	case '[':
		return c.array(i, checkAny)
	}
	return checkScalar(c, i)
}

// checkRaw checks a value that is stored as text.
func checkRaw(c *checking, i int) int {
	end := scan.Tight.Value(c.data, i, decodeDepth-c.depth)
	if end < 0 || !validText(c.text[i:end]) {
		return -1
	}
	return end
}

// checkFields is checkRaw for managed fields, which have few different values.
var checkFields = memoized(checkRaw)

func checkScalar(c *checking, i int) int {
	if c.at(i) == '"' {
		return checkText(c, i)
	}
	return scan.Tight.Value(c.data, i, 0)
}

// sortedObject is object for sorted names.
func (c *checking) sortedObject(i int, value func(name string) checker) int {
	last, first := "", true
	return c.object(i, func(name string) checker {
		if !first && name <= last {
			return nil
		}
		last, first = name, false
		return value(name)
	})
}

// object checks members; value returns the checker for a name, nil for none.
func (c *checking) object(i int, value func(name string) checker) int {
	if c.depth == decodeDepth {
		return -1
	}
	c.depth++
	end := scan.Tight.Members(c.data, i, func(n scan.Name, at int) (int, bool) {
		name := c.text[n.At+1 : n.End-1]
		if n.Has != 0 && (n.Has&scan.Escaped != 0 || !utf8.ValidString(name)) {
			return -1, false
		}
		check := value(name)
		if check == nil {
			return -1, false
		}
		return check(c, at), true
	})
	c.depth--
	return end
}

func (c *checking) array(i int, elem checker) int {
	if c.depth == decodeDepth {
		return -1
	}
	c.depth++
	end := scan.Tight.Elements(c.data, i, func(at int) (int, bool) { return elem(c, at), true })
	c.depth--
	return end
}

// at returns the byte at an index, or 0.
func (c *checking) at(i int) byte {
	if i < len(c.text) {
		return c.text[i]
	}
	return 0
}

func (c *checking) word(i int, w string) int { return scan.Word(c.data, i, w) }

// str checks a string; plain means that it has no escapes.
func (c *checking) str(i int) (end int, plain bool) {
	end, has := scan.String(c.data, i)
	if end < 0 || has != 0 && !validText(c.text[i:end]) {
		return -1, false
	}
	return end, has&scan.Escaped == 0
}

// validText refuses text that decoding would change: invalid UTF-8, and escapes that may be surrogates.
func validText(literal string) bool {
	return utf8.ValidString(literal) && !strings.Contains(literal, `\ud`) && !strings.Contains(literal, `\uD`)
}

func checkText(c *checking, i int) int {
	end, _ := c.str(i)
	return end
}

// text checks a string without escapes, and keeps it.
func text(of func(*Identity) *string) checker {
	return func(c *checking, i int) int {
		end, plain := c.str(i)
		if end < 0 || !plain {
			return -1
		}
		*of(&c.id) = c.text[i+1 : end-1]
		return end
	}
}

func integerChecker(bits int) checker {
	return func(c *checking, i int) int {
		end := scan.Number(c.data, i)
		if end < 0 {
			return -1
		}
		if _, err := strconv.ParseInt(c.text[i:end], 10, bits); err != nil {
			return -1
		}
		return end
	}
}

func timeChecker(layout string) checker {
	return orNull(func(c *checking, i int) int {
		end, plain := c.str(i)
		if end < 0 || !plain {
			return -1
		}
		if _, err := time.Parse(layout, c.text[i+1:end-1]); err != nil {
			return -1
		}
		return end
	})
}

func checkQuantity(c *checking, i int) int {
	end, plain := c.str(i)
	if end < 0 || !plain {
		return -1
	}
	text := c.text[i+1 : end-1]
	if simple(text) {
		return end
	}
	if !quantities.Fits(text) {
		return -1
	}
	if _, err := resource.ParseQuantity(text); err != nil {
		return -1
	}
	return end
}

// simple recognizes the most frequent quantities: few digits, and a suffix.
func simple(text string) bool {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	if n == 0 || n > 15 {
		return false
	}
	switch text[n:] {
	case "", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti":
		return true
	}
	return false
}

func checkBase64(c *checking, i int) int {
	end, plain := c.str(i)
	if end < 0 || !plain {
		return -1
	}
	text := c.text[i+1 : end-1]
	if len(text)%4 != 0 {
		return -1
	}
	if digits := strings.TrimSuffix(text, "="); digits != text {
		text = strings.TrimSuffix(digits, "=")
	}
	for j := range len(text) {
		b := text[j]
		if !(b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '+' || b == '/') {
			return -1
		}
	}
	return end
}
