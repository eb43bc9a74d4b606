package usage_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/usage"
)

func TestNearest(t *testing.T) {
	names := []string{"status", "verify", "restore", "repair", "rewrite"}
	for text, want := range map[string][]string{
		"statsu": {"status"}, "stat": {"status"}, "verfy": {"verify"}, "rewrit": {"rewrite"}, "re": {"repair", "restore", "rewrite"}, "elephant": nil, "": nil,
	} {
		got := usage.Nearest(text, names)
		slices.Sort(got)
		if text != "" && !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestSections: help lists a flag in the first section that claims it, an unclaimed flag in the last section and
// a hidden flag in none; subcommands have help of their own.
func TestSections(t *testing.T) {
	cmd := &cobra.Command{Use: "serve", Long: "Serve.", Run: func(*cobra.Command, []string) {}}
	below := &cobra.Command{Use: "below", Long: "Below.", Run: func(*cobra.Command, []string) {}}
	cmd.AddCommand(below)
	f, s := cmd.Flags(), &usage.Sections{}
	s.Put("first", "b")
	s.Add("second", f, func(*pflag.FlagSet) {
		f.String("a", "", "first letter")
		f.String("b", "", "second letter")
		f.String("h", "", "hidden letter")
		f.Lookup("h").Hidden = true
	})
	f.String("c", "", "long text of the third letter")
	s.Help(cmd, map[string]string{"c": "third letter"}, "That is all.")
	var out bytes.Buffer
	cmd.SetOut(&out)
	for _, args := range [][]string{{"--help"}, {"below", "--help"}} {
		out.Reset()
		cmd.SetArgs(args)
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if args[0] == "below" {
			if !strings.Contains(text, "Below.") || strings.Contains(text, "First flags") {
				t.Errorf("help of a command below:\n%s", text)
			}
			continue
		}
		last := -1
		for _, want := range []string{"Serve.", "First flags:", "--b string", "Second flags:", "--a string", "Misc flags:", "--c string", "third letter", "That is all."} {
			at := strings.Index(text, want)
			if at <= last {
				t.Errorf("%q is missing or out of order in\n%s", want, text)
			}
			last = at
		}
		if strings.Contains(text, "hidden letter") || strings.Contains(text, "long text") || strings.Count(text, "--b string") != 1 {
			t.Errorf("help:\n%s", text)
		}
	}
	if got := f.Lookup("c").Usage; got != "long text of the third letter" {
		t.Errorf("the usage of a flag became %q", got)
	}
}
