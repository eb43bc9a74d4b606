// Package screen describes the output: its width, and whether it shows colours and Unicode.
package screen

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// Screen is an output.
type Screen struct {
	Width   int // in columns; 0: as long as lines are
	Colours bool
	Unicode bool
}

// Modes of --color.
const (
	Auto   = "auto"
	Always = "always"
	Never  = "never"
)

// Of inspects out. A terminal gets colours unless NO_COLOR is set.
func Of(out io.Writer, mode string, env func(string) string) (Screen, error) {
	s := Screen{Unicode: unicode(env)}
	file, isFile := out.(*os.File)
	terminal := isFile && term.IsTerminal(int(file.Fd()))
	if terminal {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			s.Width = width
		}
	}
	if n, err := strconv.Atoi(env("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	switch mode {
	case Auto:
		s.Colours = terminal && env("NO_COLOR") == "" && env("TERM") != "dumb"
	case Always:
		s.Colours = true
	case Never:
	default:
		return s, fmt.Errorf("--color %q: want auto, always or never", mode)
	}
	return s, nil
}

// unicode reports whether the locale is UTF-8, in the order in which the variables count.
func unicode(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(env(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return true // no locale is set: containers, cron
}

// Colours of Color.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Cyan   = "36"
	Dim    = "2"
	Bold   = "1"
)

// Color returns a text in a colour if the screen has colours.
func (s Screen) Color(colour, text string) string {
	if !s.Colours || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Sign returns the Unicode or the ASCII sign.
func (s Screen) Sign(unicode, ascii string) string {
	if s.Unicode {
		return unicode
	}
	return ascii
}

// Truncate truncates a text to n columns; n < 1 keeps it.
func (s Screen) Truncate(text string, n int) string {
	runes := []rune(text)
	if n < 1 || len(runes) <= n {
		return text
	}
	dots := []rune(s.Sign("…", "..."))
	if n <= len(dots) {
		return string(runes[:n])
	}
	return string(runes[:n-len(dots)]) + string(dots)
}

// Pad appends blanks to a text, up to n columns.
func Pad(text string, n int) string {
	if missing := n - len([]rune(text)); missing > 0 {
		return text + strings.Repeat(" ", missing)
	}
	return text
}

// Patch colours a unified diff.
func (s Screen) Patch(text string) string {
	if !s.Colours {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		colour := ""
		switch {
		case strings.HasPrefix(body, "---"), strings.HasPrefix(body, "+++"):
			colour = Bold
		case strings.HasPrefix(body, "-"):
			colour = Red
		case strings.HasPrefix(body, "+"):
			colour = Green
		case strings.HasPrefix(body, "@@"):
			colour = Cyan
		}
		if colour != "" {
			body = s.Color(colour, body)
		}
		b.WriteString(body)
		if len(line) > 0 && line[len(line)-1] == '\n' {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
