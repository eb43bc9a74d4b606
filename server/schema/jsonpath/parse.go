package jsonpath

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parser reads a path from left to right.
type parser struct {
	rest  string
	depth int
}

// maxDepth bounds how deep filters and unions may be nested.
const maxDepth = 32

func (p *parser) inner(text string) ([]step, error) {
	if p.depth >= maxDepth {
		return nil, errors.New("the path is nested too deeply")
	}
	return (&parser{rest: text, depth: p.depth + 1}).steps()
}

func (p *parser) steps() ([]step, error) {
	var out []step
	for p.rest != "" {
		s, err := p.step()
		if err != nil {
			return nil, err
		}
		if _, again := s.(recursive); again && len(out) > 0 && out[len(out)-1] == step(recursive{}) {
			return nil, errors.New("invalid multiple recursive descent")
		}
		if s != nil {
			out = append(out, s)
		}
	}
	return out, nil
}

// step reads the next step; nil if it means nothing.
func (p *parser) step() (step, error) {
	if strings.HasPrefix(p.rest, "[?(") {
		return p.filter()
	}
	if after, ok := strings.CutPrefix(p.rest, ".."); ok {
		p.rest = after
		if r, _ := utf8.DecodeRuneInString(after); isWordRune(r) {
			p.rest = "." + after
		}
		return recursive{}, nil
	}
	r, size := utf8.DecodeRuneInString(p.rest)
	switch {
	case r == ' ', r == '@', r == '$':
		p.rest = p.rest[size:]
		return nil, nil
	case r == '[':
		return p.brackets()
	case r == '"', r == '\'':
		return p.quoted(byte(r))
	case r == '.':
		p.rest = p.rest[size:]
		if name := p.name(); name != "*" {
			return field(strings.ReplaceAll(name, `\`, "")), nil
		}
		return wildcard{}, nil
	case r == '+', r == '-', unicode.IsDigit(r):
		return p.number()
	case isWordRune(r):
		switch word := p.name(); word {
		case "true", "false":
			return literal{word == "true"}, nil
		default:
			return identifier(word), nil
		}
	}
	return nil, fmt.Errorf("unrecognized character in action: %#U", r)
}

func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// name reads up to an unescaped end of a name.
func (p *parser) name() string {
	i := 0
	for i < len(p.rest) && !strings.ContainsRune(" \t\r\n.,[]$@{}", rune(p.rest[i])) {
		if p.rest[i] == '\\' {
			i++
		}
		i++
	}
	i = min(i, len(p.rest))
	name := p.rest[:i]
	p.rest = p.rest[i:]
	return name
}

func (p *parser) number() (step, error) {
	i := 1
	for i < len(p.rest) && (p.rest[i] == '.' || p.rest[i] >= '0' && p.rest[i] <= '9') {
		i++
	}
	text := p.rest[:i]
	p.rest = p.rest[i:]
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return literal{n}, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("cannot parse number %s", text)
	}
	return literal{f}, nil
}

func (p *parser) quoted(quote byte) (step, error) {
	for i := 1; i < len(p.rest) && p.rest[i] != '\n'; i++ {
		if p.rest[i] != quote || p.rest[i-1] == '\\' {
			continue
		}
		text, err := unquote(p.rest[1:i], quote)
		if err != nil {
			return nil, fmt.Errorf("unquote string %s error %w", p.rest[:i+1], err)
		}
		p.rest = p.rest[i+1:]
		return literal{text}, nil
	}
	return nil, errors.New("unterminated quoted string")
}

func unquote(text string, quote byte) (string, error) {
	var b strings.Builder
	for text != "" {
		r, multibyte, tail, err := strconv.UnquoteChar(text, quote)
		if err != nil {
			return "", err
		}
		text = tail
		if multibyte {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
	}
	return b.String(), nil
}

var (
	quotedKey = regexp.MustCompile(`^'([^']*)'$`)
	sliceForm = regexp.MustCompile(`^(-?\d*)(:-?\d*)?(:-?\d*)?$`)
)

// brackets reads an index, a part of a list, a quoted key, or several of them.
func (p *parser) brackets() (step, error) {
	end := strings.IndexAny(p.rest, "]\n")
	if end < 0 || p.rest[end] != ']' {
		return nil, errors.New("unterminated array")
	}
	text := p.rest[1:end]
	p.rest = p.rest[end+1:]
	if parts := strings.Split(text, ","); len(parts) > 1 {
		var ways union
		for _, part := range parts {
			way, err := p.inner("[" + strings.Trim(part, " ") + "]")
			if err != nil {
				return nil, err
			}
			ways = append(ways, way)
		}
		return ways, nil
	}
	if key := quotedKey.FindStringSubmatch(text); key != nil {
		way, err := p.inner("." + key[1])
		return union{way}, err
	}
	return parseSlice(text)
}

func parseSlice(text string) (step, error) {
	if text == "*" {
		text = ":"
	}
	parts := sliceForm.FindStringSubmatch(text)
	if parts == nil {
		return nil, fmt.Errorf("invalid array index %s", text)
	}
	s := slice{single: parts[2] == "", toEnd: parts[2] == ":", every: 1}
	for _, n := range []struct {
		text string
		into *int
	}{{parts[1], &s.first}, {strings.TrimPrefix(parts[2], ":"), &s.end}, {strings.TrimPrefix(parts[3], ":"), &s.every}} {
		if n.text == "" {
			continue
		}
		var err error
		if *n.into, err = strconv.Atoi(n.text); err != nil {
			return nil, fmt.Errorf("array index %s is not a number", n.text)
		}
	}
	return s, nil
}

var comparison = regexp.MustCompile(`^([^!<>=]+)([!<>=]+)(.+?)$`)

// filter reads the text between "[?(" and ")]". A bracket within quotes ends nothing.
func (p *parser) filter() (step, error) {
	const open = "[?("
	var quote byte
	begun, ended := false, false
	for i := len(open); i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '\n':
			return nil, errors.New("unterminated filter")
		case (c == '"' || c == '\'') && !begun:
			begun, quote = true, c
		case begun && c == quote && p.rest[i-1] != '\\':
			ended = true
		case c == ')' && begun == ended:
			text := p.rest[len(open):i]
			if !strings.HasPrefix(p.rest[i+1:], "]") {
				return nil, errors.New("unclosed array expect ]")
			}
			p.rest = p.rest[i+2:]
			return p.condition(text)
		}
	}
	return nil, errors.New("unterminated filter")
}

func (p *parser) condition(text string) (step, error) {
	parts := comparison.FindStringSubmatch(text)
	if parts == nil {
		left, err := p.inner(text)
		return filter{left: left}, err
	}
	left, err := p.inner(parts[1])
	if err != nil {
		return nil, err
	}
	right, err := p.inner(parts[3])
	return filter{left: left, operator: parts[2], right: right}, err
}
