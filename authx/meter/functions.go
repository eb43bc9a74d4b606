package meter

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// measures are the costs of functions, by name.
var measures = map[string]measure{
	operators.In:      contained,
	"indexOf":         indexed(false),
	"lastIndexOf":     indexed(true),
	"isSorted":        walked,
	"min":             walked,
	"max":             walked,
	"sum":             walked,
	"sets.contains":   sets(func(m *Meter, a, b traits.Lister) bool { return m.subset(b, a, false) }),
	"sets.equivalent": sets(func(m *Meter, a, b traits.Lister) bool { return m.subset(b, a, false) && m.subset(a, b, false) }),
	"sets.intersects": sets(func(m *Meter, a, b traits.Lister) bool { return m.subset(a, b, true) }),

	"format":        formatted,
	"replace":       replaced,
	"split":         split,
	"join":          joinedTexts,
	"charAt":        texts(4),
	"strings.quote": texts(1), // the library charges it afterwards

	// The library counts the characters of a text for its size, and to price an order.
	"size": texts(sameBytes), operators.Less: texts(sameBytes), operators.LessEquals: texts(sameBytes),
	operators.Greater: texts(sameBytes), operators.GreaterEquals: texts(sameBytes),

	"matches": matching(matches),
	"find":    matching(find),
	"findAll": matching(findAll),

	// Versions have a price of one, and any number of parts. So have quantities, which the library cuts.
	"isGreaterThan": compared, "isLessThan": compared, "compareTo": compared,

	"isURL": texts(8),

	"quantity":   quantity,
	"isQuantity": quantity,

	// The error about an unreadable value has the text in it.
	"int": texts(8), "uint": texts(8), "double": texts(8), "bool": texts(8), "duration": texts(8), "timestamp": texts(8),

	// The library prices these lists once they are made.
	"lists.range": ranged, "flatten": flattened, "distinct": distinct, "sort": sorted, "@sortByAssociatedKeys": sorted,

	// The price is one, however much they copy.
	"cel.@mapInsert": inserted, "optional.unwrap": unwrapped, "unwrapOpt": unwrapped,

	// A URL is taken apart again each time.
	"getQuery": parsed, "getEscapedPath": parsed,

	// Names of time zones are looked up in files.
	"getFullYear": zoned, "getMonth": zoned, "getDate": zoned, "getDayOfMonth": zoned, "getDayOfWeek": zoned, "getDayOfYear": zoned,
	"getHours": zoned, "getMinutes": zoned, "getSeconds": zoned, "getMilliseconds": zoned,
}

// text returns an argument that is one.
func text(args []ref.Val, i int) (string, bool) {
	if i >= len(args) {
		return "", false
	}
	v, ok := args[i].(types.String)
	return string(v), ok
}

// partBytes is the number of bytes of a part of a version.
const partBytes = 16

// length is the number of bytes of a text, or of a value that is compared like one; 0 for other values.
func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case apiservercel.URL:
		return len(v.Opaque) + len(v.Host) + len(v.Path) + len(v.RawQuery) + len(v.Fragment)
	case apiservercel.Semver:
		n := 0
		for _, part := range v.Pre {
			n += partBytes + len(part.VersionStr)
		}
		return n
	}
	return 0
}

// compared measures the comparison of two values.
func compared(m *Meter, args []ref.Val) ref.Val {
	for _, v := range args {
		m.Spend(length(v) / sameBytes)
	}
	return nil
}

// texts takes a step for some bytes of each text.
func texts(bytes int) measure {
	return func(m *Meter, args []ref.Val) ref.Val {
		for i := range args {
			s, _ := text(args, i)
			m.Spend(len(s) / bytes)
		}
		return nil
	}
}

// contained looks for a value in a list, or among the keys of a map.
func contained(m *Meter, args []ref.Val) ref.Val {
	if len(args) != 2 {
		return nil
	}
	list, ok := args[1].(traits.Lister)
	if !ok {
		m.Spend(length(args[0]) / sameBytes)
		return nil
	}
	if holds(args[0]) {
		return types.Bool(m.contains(list, args[0]))
	}
	if n := length(args[0]); n >= sameBytes {
		size, _ := list.Size().(types.Int)
		m.spendProduct(int(size), n/sameBytes)
	}
	return nil
}

// walked takes the steps of finding the price of a function of lists, which has to do with
// all that is in them.
func walked(m *Meter, args []ref.Val) ref.Val {
	if _, ok := args[0].(traits.Lister); ok {
		m.walk(args[0], false)
	}
	return nil
}

// indexed searches for a value in a list, or for a text in another one. The library compares it at each
// position from the start.
func indexed(last bool) measure {
	return func(m *Meter, args []ref.Val) ref.Val {
		if s, ok := text(args, 0); ok {
			if part, also := text(args, 1); also {
				return m.position(s, part, last, args[2:])
			}
		}
		walked(m, args)
		if list, ok := args[0].(traits.Lister); ok && len(args) == 2 && !m.Over() {
			if holds(args[1]) || length(args[1]) >= sameBytes {
				return m.index(list, args[1], last)
			}
		}
		return nil
	}
}

// position returns where a text occurs in another one, in characters; nil leaves it to the library.
func (m *Meter) position(s, part string, last bool, offset []ref.Val) ref.Val {
	if !m.Spend((len(s) + len(part)) / sameBytes) {
		return nil
	}
	if len(part) < sameBytes || s == "" || !utf8.ValidString(s) || !utf8.ValidString(part) {
		m.spendProduct(len(s)/sameBytes, len(part))
		return nil
	}
	from := 0
	if len(offset) > 0 {
		n, ok := offset[0].(types.Int)
		if !ok || n < 0 || last {
			m.spendProduct(len(s), len(part))
			return nil
		}
		for range n {
			if from >= len(s) {
				return types.Int(-1)
			}
			_, size := utf8.DecodeRuneInString(s[from:])
			from += size
		}
	}
	at := strings.Index(s[from:], part)
	if last {
		at = strings.LastIndex(s, part)
	}
	if at < 0 {
		return types.Int(-1)
	}
	return types.Int(utf8.RuneCountInString(s[:from+at]))
}

func sets(f func(m *Meter, a, b traits.Lister) bool) measure {
	return func(m *Meter, args []ref.Val) ref.Val {
		a, ok := args[0].(traits.Lister)
		b, also := args[1].(traits.Lister)
		if !ok || !also {
			return nil
		}
		return types.Bool(f(m, a, b))
	}
}

func formatted(m *Meter, args []ref.Val) ref.Val {
	if format, ok := text(args, 0); ok && m.precisions(format) && m.Spend(len(format)) {
		m.walk(args[len(args)-1], true)
	}
	return nil
}

// precisions takes steps for the digits that a format requests.
func (m *Meter) precisions(format string) bool {
	for {
		_, after, found := strings.Cut(format, "%.")
		if !found {
			return true
		}
		digits := 0
		for after != "" && after[0] >= '0' && after[0] <= '9' {
			digits = min(digits*10+int(after[0]-'0'), MaxSteps)
			after = after[1:]
		}
		if !m.Spend(digits) {
			return false
		}
		format = after
	}
}

// replaced returns the steps for the text that results from a replacement.
func replaced(m *Meter, args []ref.Val) ref.Val {
	s, _ := text(args, 0)
	old, _ := text(args, 1)
	by, ok := text(args, 2)
	if !ok {
		return nil
	}
	times := strings.Count(s, old)
	if len(args) > 3 {
		if n, ok := args[3].(types.Int); ok && n >= 0 {
			times = int(min(types.Int(times), n))
		}
	}
	m.Spend(len(s) / joinedBytes)
	m.spendProduct(times, len(by))
	return nil
}

func split(m *Meter, args []ref.Val) ref.Val {
	s, ok := text(args, 0)
	by, also := text(args, 1)
	if !ok || !also {
		return nil
	}
	parts := strings.Count(s, by) + 1
	if len(args) > 2 {
		if n, ok := args[2].(types.Int); ok && n >= 0 {
			parts = int(min(types.Int(parts), n))
		}
	}
	m.Spend(parts)
	return nil
}

// joinedTexts takes steps for a text that is joined of a list: one text may be in it very
// often.
func joinedTexts(m *Meter, args []ref.Val) ref.Val {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return nil
	}
	by, _ := text(args, 1)
	for it := list.Iterator(); it.HasNext() == types.True; {
		s, _ := it.Next().(types.String)
		if !m.Spend(1 + len(s) + len(by)) {
			break
		}
	}
	return nil
}

// quantity takes steps for the digits of a quantity: the library computes with
// all of them.
func quantity(m *Meter, args []ref.Val) ref.Val {
	s, ok := text(args, 0)
	if !ok {
		return nil
	}
	m.spendProduct(len(s)/1024, len(s))
	if at := strings.LastIndexAny(s, "eE"); at >= 0 {
		digits := strings.TrimLeft(s[at+1:], "+-0")
		size := 0
		for _, d := range digits {
			if d < '0' || d > '9' {
				break
			}
			size = min(size*10+int(d-'0'), MaxSteps)
		}
		if size >= 10_000 {
			m.Spend(-1)
		}
		m.Spend(size / 10)
	}
	return nil
}

func parsed(m *Meter, args []ref.Val) ref.Val {
	if u, ok := args[0].Value().(*url.URL); ok {
		m.Spend(len(u.RawQuery) + len(u.Path))
	}
	return nil
}

// zoneSteps is the cost of looking up a time zone.
const zoneSteps = 200

func zoned(m *Meter, args []ref.Val) ref.Val {
	if len(args) > 1 {
		m.Spend(zoneSteps)
	}
	return nil
}
