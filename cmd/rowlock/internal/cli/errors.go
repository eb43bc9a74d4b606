// Package cli holds what all commands share: exit codes, errors in one line, --overwrite, and the formats of sizes and
// times.
package cli

import (
	"fmt"
	"strings"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
)

// OneLine returns an error as one printable line. Parts of it may come from a server or a file.
func OneLine(err error) string {
	var text strings.Builder
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		switch so := text.String(); {
		case so == "":
		case strings.HasSuffix(so, ":"): // a list follows
			text.WriteString(" ")
		default:
			text.WriteString("; ")
		}
		text.WriteString(line)
	}
	return display.Safe(text.String())
}

// ExitCode ends the process with an exit code; the command has printed the reason.
type ExitCode int

func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }
