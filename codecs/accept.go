package codecs

import (
	"sort"
	"strconv"
	"strings"
)

// clause is one entry of an Accept header.
type clause struct {
	main, sub string
	q         float64
	params    []param
}

type param struct{ name, value string }

// maxClauses limits the clauses of an Accept header that are read. Browsers send ten; a header may have a million, for which memory
// would be needed.
const maxClauses = 256

// parseAccept splits an Accept header into clauses, best first. Malformed clauses
// and parameters are left out. Nothing is unquoted and q=0 does not exclude: this
// is the reading of stock servers, and clients have grown around it.
func parseAccept(header string) []clause {
	clauses := make([]clause, 0, min(1+strings.Count(header, ","), maxClauses))
	for read := 0; header != "" && read < maxClauses; read++ {
		var part string
		part, header, _ = strings.Cut(header, ",")
		if c, ok := parseClause(strings.Trim(part, " ")); ok {
			clauses = append(clauses, c)
		}
	}
	// The comparison is no proper order where weights and wildcards disagree; the
	// algorithm is then part of the result.
	sort.Slice(clauses, func(i, j int) bool {
		a, b := &clauses[i], &clauses[j]
		return a.q > b.q || a.main != "*" && b.main == "*" || a.sub != "*" && b.sub == "*"
	})
	return clauses
}

func parseClause(part string) (clause, bool) {
	c := clause{q: 1}
	name, rest, _ := strings.Cut(part, ";")
	main, sub, _ := strings.Cut(name, "/")
	c.main = strings.Trim(main, " ")
	switch {
	case sub == "" && c.main == "*":
		c.sub = "*"
	case sub == "":
		return c, false
	default:
		// A slash at the very end is forgiven.
		first, more, _ := strings.Cut(sub, "/")
		if more != "" {
			return c, false
		}
		c.sub = strings.Trim(first, " ")
	}
	for rest != "" {
		var p string
		p, rest, _ = strings.Cut(rest, ";")
		name, value, _ := strings.Cut(p, "=")
		if value == "" {
			continue
		}
		value, more, _ := strings.Cut(value, "=")
		if more != "" {
			continue
		}
		if name = strings.Trim(name, " "); name == "q" {
			c.q, _ = strconv.ParseFloat(value, 32)
			continue
		}
		c.set(name, strings.Trim(value, " "))
	}
	return c, true
}

// maxParams limits the parameters of a clause that are read. Clients send three or four; a header may have a hundred
// thousand.
const maxParams = 64

// set keeps the last value of a repeated parameter.
func (c *clause) set(name, value string) {
	for i := range c.params {
		if c.params[i].name == name {
			c.params[i].value = value
			return
		}
	}
	if len(c.params) < maxParams {
		c.params = append(c.params, param{name, value})
	}
}
