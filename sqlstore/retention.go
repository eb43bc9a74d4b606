package sqlstore

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Retention defines for how long ended rows are kept.
type Retention struct {
	Default time.Duration // of resources that ByResource does not name
	// ByResource has the retention of other resources, by name ("leases.coordination.k8s.io"), or by plural in
	// any group ("leases").
	ByResource map[string]time.Duration
}

// ParseRetention parses "5m", "7d", or "leases=10m,events=1h,*=7d", where * is the rest, 0 if it is missing.
// Its error names the invalid part.
func ParseRetention(text string) (r Retention, err error) {
	if !strings.Contains(text, "=") {
		r.Default, err = ParseDuration(text)
		return r, err
	}
	for part := range strings.SplitSeq(text, ",") {
		name, age, ok := strings.Cut(part, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return r, fmt.Errorf("%q is not of the form RESOURCE=DURATION, such as events=1h", part)
		}
		d, err := ParseDuration(strings.TrimSpace(age))
		if err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
		_, twice := r.ByResource[name]
		switch {
		case twice, name == "*" && r.Default != 0:
			return r, fmt.Errorf("%s is given twice", name)
		case name == "*":
			r.Default = d
		case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "":
			return r, fmt.Errorf("%q is not a resource: want its plural (leases) or RESOURCE.GROUP (leases.coordination.k8s.io)", name)
		default:
			if r.ByResource == nil {
				r.ByResource = make(map[string]time.Duration)
			}
			r.ByResource[name] = d
		}
	}
	return r, nil
}

// ParseDuration parses a duration above 0, which may also be in days: 7d.
func ParseDuration(text string) (time.Duration, error) {
	const longest = 36500
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, e := strconv.ParseFloat(days, 64)
		if err = e; !(n <= longest) { // NaN too
			n, err = 0, strconv.ErrRange
		}
		d = time.Duration(max(n, 0) * 24 * float64(time.Hour))
	}
	if err != nil || d <= 0 { // it may be less than a nanosecond
		return 0, fmt.Errorf("%q is not a duration: want one such as 5m, 12h or 7d", text)
	}
	return d, nil
}

// For returns how long the history of a resource is kept, or of a plural in any group; for "" that of the rest.
func (r Retention) For(resource string) time.Duration {
	return byResource(r.ByResource, resource, r.Default)
}

// byResource returns the value of a resource, or of its plural in any group, or rest.
func byResource[T any](values map[string]T, resource string, rest T) T {
	if v, ok := values[resource]; ok {
		return v
	}
	plural, _, _ := strings.Cut(resource, ".")
	if v, ok := values[plural]; ok {
		return v
	}
	return rest
}

// below lists the names, "" for the rest, for which r keeps less than another.
func (r Retention) below(other Retention) (names []string) {
	for _, name := range r.names(other) {
		if r.For(name) < other.For(name) {
			names = append(names, name)
		}
	}
	return names
}

// longest keeps each resource for the longer of two retentions.
func (r Retention) longest(other Retention) Retention {
	both := Retention{Default: max(r.Default, other.Default)}
	for _, name := range r.names(other) {
		if d := max(r.For(name), other.For(name)); name != "" {
			if both.ByResource == nil {
				both.ByResource = make(map[string]time.Duration)
			}
			both.ByResource[name] = d
		}
	}
	return both
}

// names returns the names in either retention, and "" for the rest.
func (r Retention) names(other Retention) []string {
	names := map[string]struct{}{"": {}}
	for _, of := range []map[string]time.Duration{r.ByResource, other.ByResource} {
		for name := range of {
			names[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// String returns the form that ParseRetention parses.
func (r Retention) String() string {
	if len(r.ByResource) == 0 {
		return r.Default.String()
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.ByResource)) {
		fmt.Fprintf(&b, "%s=%s,", name, r.ByResource[name])
	}
	return b.String() + "*=" + r.Default.String()
}

// log returns for how long the log is kept: for window, but not longer than the rest.
func (r Retention) log(window time.Duration) time.Duration { return min(window, r.Default) }

// packs reports whether any history is kept for longer than the log.
func (r Retention) packs(window time.Duration) bool {
	log := r.log(window)
	for _, d := range r.ByResource {
		if d > log {
			return true
		}
	}
	return r.Default > log
}
