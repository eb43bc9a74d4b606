package meter

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// A pattern of a few bytes becomes a program of very many instructions ("((a{100}){100}"),
// which is run for each character of a text, while the price of a match has to do with the
// length of the pattern.

// patterned are the functions whose second argument is a pattern.
var patterned = map[string]bool{"matches": true, "find": true, "findAll": true}

const (
	// patternBytes is the number of bytes of a pattern that a step reads, and madeSteps the steps that
	// each instruction of the result costs.
	patternBytes = 4
	madeSteps    = 4
	// classSteps is the cost of reading a class of Unicode: four bytes become hundreds of ranges.
	classSteps = 500
	// matchedAtOnce is the number of instructions, each for one byte of text, in a step.
	matchedAtOnce = 64
)

// pattern is a compiled pattern.
type pattern struct {
	re   *regexp.Regexp
	size int // instructions
}

// patterns are recently compiled ones. Programs are assembled again for each evaluation, and their patterns
// with them.
var patterns = struct {
	sync.RWMutex
	known map[string]pattern
}{known: map[string]pattern{}}

const (
	maxPatterns  = 256
	maxKeptBytes = 1024 // of a pattern
	maxKeptSize  = 512  // of the compiled pattern
)

// compiled compiles a pattern; nil where it cannot be, or there were not enough steps.
func (m *Meter) compiled(text string) *pattern {
	patterns.RLock()
	p, ok := patterns.known[text]
	patterns.RUnlock()
	if ok {
		return &p
	}
	if !m.Spend(len(text)/patternBytes) || !m.spendProduct(classes(text), classSteps) {
		return nil
	}
	text = strings.Clone(text) // it may be a small part of a large one, which would be kept with it
	p.size = Instructions(text)
	if !m.spendProduct(p.size, madeSteps) {
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil
	}
	p.re = re
	if len(text) <= maxKeptBytes && p.size <= maxKeptSize {
		patterns.Lock()
		if len(patterns.known) >= maxPatterns {
			clear(patterns.known)
		}
		patterns.known[text] = p
		patterns.Unlock()
	}
	return &p
}

// classes bounds the Unicode classes of a pattern.
func classes(text string) int { return strings.Count(text, `\p`) + strings.Count(text, `\P`) }

// Instructions estimates how many instructions a pattern becomes when it is compiled; one, if it is invalid.
// It costs no more than reading the pattern.
func Instructions(text string) int {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 1
	}
	return instructions(re)
}

func instructions(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass:
		return 1 + len(re.Rune)/2
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Max, re.Min, 1)
	}
	return n
}

// matching measures a match, and does it.
func matching(do func(m *Meter, re *regexp.Regexp, s string, args []ref.Val) ref.Val) measure {
	return func(m *Meter, args []ref.Val) ref.Val {
		s, ok := text(args, 0)
		by, also := text(args, 1)
		if !ok || !also {
			return nil
		}
		p := m.compiled(by)
		if p == nil || !m.Spend(int(min(float64(len(s)+1)*float64(p.size)/matchedAtOnce, MaxSteps*matchedAtOnce))) {
			return nil // the library reports an invalid pattern
		}
		return do(m, p.re, s, args)
	}
}

func matches(_ *Meter, re *regexp.Regexp, s string, _ []ref.Val) ref.Val {
	return types.Bool(re.MatchString(s))
}

func find(_ *Meter, re *regexp.Regexp, s string, _ []ref.Val) ref.Val {
	return types.String(re.FindString(s))
}

// foundAtOnce is the number of bytes of a text in a step of a search; a part may begin at each of
// them.
const foundAtOnce = 2

func findAll(m *Meter, re *regexp.Regexp, s string, args []ref.Val) ref.Val {
	limit := types.Int(-1)
	if len(args) > 2 {
		n, ok := args[2].(types.Int)
		if !ok {
			return nil
		}
		limit = n
	}
	if !m.Spend(len(s) / foundAtOnce) {
		return nil
	}
	return types.NewStringList(types.DefaultTypeAdapter, re.FindAllString(s, int(limit)))
}
