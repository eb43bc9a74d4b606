package blame

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/moments"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/screen"
)

// Render puts the last writer and the time before each line of text that sets a value. text is the object as YAML;
// some values may be hidden.
func Render(s screen.Screen, now time.Time, text string, origins map[string]Origin) (string, error) {
	owners, err := lines(text)
	if err != nil {
		return "", err
	}
	who := 0
	for _, o := range origins {
		who = max(who, len([]rune(name(o))))
	}
	who = min(who, 28)
	var b strings.Builder
	at := ""
	i := 0
	for line := range strings.Lines(text) {
		if p, known := owners[i]; known {
			at = p
		}
		gutter := strings.Repeat(" ", who+26)
		if o, ok := origins[at]; ok && at != "" {
			gutter = screen.Pad(s.Truncate(name(o), who), who) + " " + screen.Pad(when(o, now), 25)
		}
		b.WriteString(s.Color(screen.Dim, gutter) + s.Sign("│", "|") + " " + display.SafeLines(line))
		i++
	}
	return b.String(), nil
}

func name(o Origin) string {
	text := o.Manager
	if o.User != "" {
		text = strings.TrimSpace(text + " (" + o.User + ")")
	}
	text = cmp.Or(text, "-")
	return display.Safe(text)
}

// when returns the time of a day and the revision; ≤ for a field that is older than the history.
func when(o Origin, now time.Time) string {
	t := o.Time.In(now.Location())
	text := t.Format("15:04:05")
	if moments.Day(t, now) != "today" {
		text = t.Format("2006-01-02 15:04")
	}
	if o.Before {
		return "<= " + text
	}
	return fmt.Sprintf("%s #%s", text, display.Safe(o.Revision))
}

// lines maps lines of a YAML text to the path of the value that begins there: "" for containers. Continuation
// lines are missing.
func lines(text string) (map[int]string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	owners := map[int]string{}
	if len(doc.Content) == 1 {
		mark(doc.Content[0], nil, owners)
	}
	return owners, nil
}

func mark(n *yaml.Node, at path, owners map[int]string) {
	claim := func(line int, p string) {
		if have := owners[line-1]; have == "" {
			owners[line-1] = p
		}
	}
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) > 0:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			next := append(at[:len(at):len(at)], step{key: key.Value})
			if holds(value) {
				claim(key.Line, "")
			} else {
				claim(key.Line, next.String())
			}
			mark(value, next, owners)
		}
	case n.Kind == yaml.SequenceNode && len(n.Content) > 0:
		var list []any
		if n.Decode(&list) != nil {
			return
		}
		for i := range list {
			list[i] = plain(list[i])
		}
		for i, s := range elements(list) {
			mark(n.Content[i], append(at[:len(at):len(at)], s), owners)
		}
	default:
		claim(n.Line, at.String())
	}
}

func holds(n *yaml.Node) bool {
	return (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) && len(n.Content) > 0
}

// plain converts the numbers of YAML into those of JSON, so that elements have the same names.
func plain(value any) any {
	switch v := value.(type) {
	case int:
		return int64(v)
	case map[string]any:
		for key, child := range v {
			v[key] = plain(child)
		}
	}
	return value
}
