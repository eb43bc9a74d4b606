// Package usage prints the usage of commands, with their flags in sections, and errors about command lines that suggest
// the most similar command, the valid values, and the command for help.
package usage

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	cliflag "k8s.io/component-base/cli/flag"
)

// columns is the width of help that does not go to a terminal.
const columns = 110

// misc is the section of flags that are in no other.
const misc = "misc"

// Sections are the flags of a command by subject.
type Sections struct {
	order []string
	of    map[string]string // flag to section
}

// Add lets declare put flags into f, which are shown in the section of that title unless they
// were put into another one before.
func (s *Sections) Add(title string, f *pflag.FlagSet, declare func(*pflag.FlagSet)) {
	s.Put(title)
	before := map[string]bool{}
	f.VisitAll(func(flag *pflag.Flag) { before[flag.Name] = true })
	declare(f)
	f.VisitAll(func(flag *pflag.Flag) {
		if s.of[flag.Name] == "" && !before[flag.Name] {
			s.Put(title, flag.Name)
		}
	})
}

// Put moves flags to a section. Sections are shown in the order in which they are first named.
func (s *Sections) Put(title string, flags ...string) {
	if s.of == nil {
		s.of = map[string]string{}
	}
	if !slices.Contains(s.order, title) {
		s.order = append(s.order, title)
	}
	for _, flag := range flags {
		s.of[flag] = title
	}
}

// Named returns the flags that are shown, in their sections.
func (s *Sections) Named(f *pflag.FlagSet) cliflag.NamedFlagSets {
	named := cliflag.NamedFlagSets{NormalizeNameFunc: f.GetNormalizeFunc()}
	for _, title := range append(slices.Clone(s.order), misc) {
		named.FlagSet(title)
	}
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		title, found := s.of[flag.Name]
		if !found {
			title = misc
		}
		named.FlagSet(title).AddFlag(flag)
	})
	return named
}

// Help makes these sections the help of a command, with texts in the place of the usages of
// some flags and a remark at the end.
func (s *Sections) Help(cmd *cobra.Command, short map[string]string, remark string) {
	inherited := cmd.HelpFunc()
	cmd.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c != cmd {
			inherited(c, args) // a command below
			return
		}
		out := c.OutOrStdout()
		named := s.Named(c.Flags())
		for _, set := range named.FlagSets {
			for name, usage := range short {
				if flag := set.Lookup(name); flag != nil {
					defer func(was string) { flag.Usage = was }(flag.Usage)
					flag.Usage = usage
				}
			}
		}
		fmt.Fprintf(out, "%s\n\nUsage:\n  %s\n", strings.TrimSpace(c.Long), c.UseLine())
		cliflag.PrintSections(out, named, width(out))
		fmt.Fprintf(out, "\n%s\n", remark)
	})
}

// width returns the width of the terminal, or a readable default.
func width(out io.Writer) int {
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 40 {
			return w
		}
	}
	return columns
}
