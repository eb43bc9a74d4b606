package recorded

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// compare lists the differences between an answer and the wanted one.
func compare(step *Step, got *answer, vars map[string]string) []string {
	want := &step.Want
	var diff []string
	if standing(step, got) {
		return nil
	}
	if got.status != want.Status {
		diff = append(diff, fmt.Sprintf("status: want %d, got %d (%s)", want.Status, got.status, brief(got.body)))
	}
	if want.Type != "" && got.header.Get("Content-Type") != want.Type {
		diff = append(diff, fmt.Sprintf("type: want %q, got %q", want.Type, got.header.Get("Content-Type")))
	}
	if !listed(step.Ignore, "warnings") {
		warnings := append([]string{}, got.header.Values("Warning")...)
		for i := range warnings {
			warnings[i] = normal(warnings[i], vars)
		}
		if len(warnings)+len(want.Warnings) > 0 && !reflect.DeepEqual(warnings, want.Warnings) {
			diff = append(diff, fmt.Sprintf("warnings: want %q, got %q", want.Warnings, warnings))
		}
	}
	for name, w := range map[string]string{"Retry-After": want.RetryAfter, "Allow": want.Allow, "WWW-Authenticate": want.WWWAuthenticate} {
		if w != "" && !listed(step.Ignore, strings.ToLower(name)) && got.header.Get(name) != w {
			diff = append(diff, fmt.Sprintf("%s: want %q, got %q", name, w, got.header.Get(name)))
		}
	}
	diff = append(diff, shown(step, got, vars)...)
	if !want.HasBody || listed(step.Ignore, "body") || len(diff) > 0 && got.status != want.Status {
		return diff
	}
	w, g := deepCopy(want.Body), deepCopy(got.body)
	if text, ok := g.(string); ok && step.Head > 0 {
		g = head(text, step.Head)
	}
	w, g = tidy(w, vars), tidy(g, vars)
	for _, path := range step.Sort {
		sortAt(w, path)
		sortAt(g, path)
	}
	for _, path := range step.Ignore {
		remove(w, strings.Split(path, "."))
		remove(g, strings.Split(path, "."))
	}
	if len(step.Only) > 0 {
		for _, path := range step.Only {
			a, b := values(w, path), values(g, path)
			differ(path, a, b, vars, &diff)
		}
		return diff
	}
	differ("", w, g, vars, &diff)
	return diff
}

// shown compares the headers that count.
func shown(step *Step, got *answer, vars map[string]string) (diff []string) {
	for _, name := range step.Show {
		w, g := "none", "none"
		if v := step.Want.Headers[name]; v != nil {
			w = *v
		}
		if v := got.header.Values(name); len(v) > 0 {
			g = normal(v[0], vars)
		}
		if w != g {
			diff = append(diff, fmt.Sprintf("%s: want %s, got %s", name, w, g))
		}
	}
	return diff
}

var blanks = regexp.MustCompile(`[ \t]+`)

// head returns the first lines of a text, with runs of blanks made one.
func head(text string, lines int) string {
	kept := strings.SplitAfterN(text, "\n", lines+1)
	return blanks.ReplaceAllString(strings.Join(kept[:min(len(kept), lines)], ""), " ")
}

// standing reports whether a step makes the account that each namespace has: no controller
// made it where the answers were recorded, and here one may have been faster.
func standing(step *Step, got *answer) bool {
	var body struct{ Metadata struct{ Name string } }
	return step.Want.Status == http.StatusCreated && got.status == http.StatusConflict &&
		strings.HasPrefix(step.Do, "POST ") && strings.HasSuffix(step.Do, "/serviceaccounts") &&
		json.Unmarshal(step.Body, &body) == nil && body.Metadata.Name == "default"
}

func listed(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func brief(v any) string {
	b, _ := json.Marshal(v)
	if len(b) > 300 {
		b = b[:300]
	}
	return string(b)
}

func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = deepCopy(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = deepCopy(e)
		}
		return l
	}
	return v
}

const mostDiffs = 12

func differ(path string, want, got any, vars map[string]string, out *[]string) {
	if len(*out) >= mostDiffs {
		return
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			*out = append(*out, fmt.Sprintf("%s: want %s, got %s", path, brief(want), brief(got)))
			return
		}
		keys := map[string]bool{}
		for k := range w {
			keys[k] = true
		}
		for k := range g {
			keys[k] = true
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			wv, inW := w[k]
			gv, inG := g[k]
			switch {
			case !inG:
				*out = append(*out, fmt.Sprintf("%s.%s: missing, want %s", path, k, brief(wv)))
			case !inW:
				*out = append(*out, fmt.Sprintf("%s.%s: unwanted %s", path, k, brief(gv)))
			default:
				differ(path+"."+k, wv, gv, vars, out)
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			*out = append(*out, fmt.Sprintf("%s: want %s, got %s", path, brief(want), brief(got)))
			return
		}
		for i := range w {
			differ(fmt.Sprintf("%s.%d", path, i), w[i], g[i], vars, out)
		}
	default:
		if !reflect.DeepEqual(want, got) && !fits(want, got, vars) {
			*out = append(*out, fmt.Sprintf("%s: want %s, got %s", path, brief(want), brief(got)))
		}
	}
}

var holeRE = regexp.MustCompile(`<(uid|rv|time|continue|ip|port|random)>`)

// fits reports whether a text matches a wanted string with normalised parts, such as a time inside a message.
func fits(want, got any, vars map[string]string) bool {
	w, ok1 := want.(string)
	g, ok2 := got.(string)
	if !ok1 || !ok2 || !holeRE.MatchString(w) {
		return false
	}
	var re strings.Builder
	re.WriteString("^(?s)")
	last := 0
	for _, loc := range holeRE.FindAllStringIndex(w, -1) {
		re.WriteString(regexp.QuoteMeta(w[last:loc[0]]))
		re.WriteString(".+?")
		last = loc[1]
	}
	re.WriteString(regexp.QuoteMeta(w[last:]) + "$")
	m, err := regexp.MatchString(re.String(), g)
	return err == nil && m
}
