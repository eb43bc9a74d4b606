// Package screen knows what text is written to: how wide it is, and whether it shows
// colours and more than ASCII.
package screen

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// Screen is where text goes.
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

// Of looks at where out goes. Colours are for terminals, unless NO_COLOR says otherwise.
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

// unicode: what the locale says, in the order in which it is looked up.
func unicode(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(env(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return true // nothing is said: containers, cron
}

// Colours of Paint.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Cyan   = "36"
	Dim    = "2"
	Bold   = "1"
)

// Paint is a text in a colour, where there are colours.
func (s Screen) Paint(colour, text string) string {
	if !s.Colours || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Sign is one of two signs, by what the screen can show.
func (s Screen) Sign(unicode, ascii string) string {
	if s.Unicode {
		return unicode
	}
	return ascii
}

// Fit is a text that takes at most n columns; its end is left out otherwise. n < 1: as it is.
func (s Screen) Fit(text string, n int) string {
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

// Pad is a text with blanks behind it, up to n columns.
func Pad(text string, n int) string {
	if missing := n - len([]rune(text)); missing > 0 {
		return text + strings.Repeat(" ", missing)
	}
	return text
}

// Patch is a unified diff in colours, where there are colours.
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
			body = s.Paint(colour, body)
		}
		b.WriteString(body)
		if len(line) > 0 && line[len(line)-1] == '\n' {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
