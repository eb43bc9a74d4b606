package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/screen"
)

// sign returns the mark of a step in the printed plan.
func (s *Step) sign(sc screen.Screen) (sign, colour string) {
	switch {
	case s.Err != nil:
		return "!", screen.Red
	case s.Action == Create:
		return "+", screen.Green
	case s.Action == Delete:
		return "-", screen.Red
	}
	return "~", screen.Yellow
}

// Line returns a step in one line, with its error below.
func (s *Step) Line(sc screen.Screen) string {
	sign, colour := s.sign(sc)
	text := fmt.Sprintf("  %s %-6s  %s", sign, s.Action, s.Target.Where())
	if len(s.Fields) > 0 {
		text += ": " + strings.Join(s.Fields, ", ")
	}
	notes := s.Notes
	if s.Done {
		notes = []string{s.Note} // expected results were printed
	}
	for _, note := range notes {
		if note != "" {
			text += " (" + note + ")"
		}
	}
	text = sc.Color(colour, display.Safe(text)) + "\n"
	if s.Err != nil {
		text += "             " + display.Safe(s.Err.Error()) + "\n"
	}
	return text
}

// Text returns the whole plan.
func (p *Plan) Text(sc screen.Screen) string {
	var b strings.Builder
	counts := map[Action]int{}
	faults := 0
	for _, s := range p.Steps {
		b.WriteString(s.Line(sc))
		if s.Err != nil {
			faults++
			continue
		}
		counts[s.Action]++
	}
	if len(p.Steps) > 0 {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%d to create, %d to change, %d to adopt, %d to delete; %d the same.\n", counts[Create], counts[Change], counts[Adopt], counts[Delete], p.Same)
	for _, reason := range slices.Sorted(maps.Keys(p.Left)) {
		fmt.Fprintf(&b, "Left out: %d %s.\n", p.Left[reason], display.Safe(reason))
	}
	for _, note := range p.Notes {
		b.WriteString(display.Safe(note) + "\n")
	}
	if faults > 0 {
		b.WriteString(sc.Color(screen.Red, fmt.Sprintf("%d would not go (!): they are left as they are.", faults)) + "\n")
	}
	return b.String()
}

// Report counts the steps by outcome. It counts steps separately that the plan has not reached, as
// the user interrupted it: the same command continues with them.
func (p *Plan) Report() string {
	done, conflicts, failed, left := 0, 0, 0, 0
	for _, s := range p.Steps {
		switch {
		case s.Done:
			done++
		case s.Conflict():
			conflicts++
		case s.Err != nil:
			failed++
		default:
			left++
		}
	}
	text := fmt.Sprintf("%d done, %d conflicts, %d failed.\n", done, conflicts, failed)
	if left > 0 {
		text = fmt.Sprintf("%d done, %d conflicts, %d failed, %d not tried.\n", done, conflicts, failed, left)
	}
	return text
}
