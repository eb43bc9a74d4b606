package usage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ExplainErrors extends command-line errors of a command and its subcommands: they suggest the nearest name,
// list the valid values and name the relevant help.
func ExplainErrors(root *cobra.Command) {
	root.SetFlagErrorFunc(flagError)
	root.InitDefaultHelpCmd()
	guideArgs(root)
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = helpArgs
		}
	}
}

// helpArgs are names of commands, or of topics, one below the other.
func helpArgs(help *cobra.Command, args []string) error {
	found := help.Root()
	for _, arg := range args {
		i := slices.IndexFunc(found.Commands(), func(c *cobra.Command) bool { return c.Name() == arg || c.HasAlias(arg) })
		if i < 0 {
			return unknownCommand(found, arg)
		}
		found = found.Commands()[i]
	}
	return nil
}

// unknownCommand suggests the commands that the user may have meant.
func unknownCommand(cmd *cobra.Command, arg string) error {
	names := make([]string, 0, len(cmd.Commands()))
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q%s; %s", arg, cmd.CommandPath(), didYouMean(arg, "", names), helpHint(cmd))
}

func guideArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err == nil {
				return nil
			}
			if cmd.HasAvailableSubCommands() && len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return fmt.Errorf("%w: want %q; %s", err, cmd.UseLine(), helpHint(cmd))
		}
	}
	for _, c := range cmd.Commands() {
		guideArgs(c)
	}
}

func helpHint(cmd *cobra.Command) string { return fmt.Sprintf("see %q", cmd.CommandPath()+" --help") }

// flagError names the valid values of a flag, or the flag that may have been meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	if errors.As(err, &unknown) && strings.Contains(cmd.Use, "[-- ") && cmd.ArgsLenAtDash() < 0 {
		err = fmt.Errorf("%w: what is not for this command comes after --: want %q", err, cmd.UseLine())
	}
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		return fmt.Errorf("%w%s; %s", err, didYouMean(unknown.GetSpecifiedName(), "--", names), helpHint(cmd))
	case errors.As(err, &invalid):
		flag := invalid.GetFlag()
		if wanted := takes(flag.Value.Type()); wanted != "" {
			return fmt.Errorf("invalid argument %q for \"--%s\" flag: want %s; %s", invalid.GetValue(), flag.Name, wanted, helpHint(cmd))
		}
	case errors.As(err, &missing):
		if wanted := takes(missing.GetFlag().Value.Type()); wanted != "" {
			return fmt.Errorf("%w: want %s; %s", err, wanted, helpHint(cmd))
		}
	}
	return fmt.Errorf("%w; %s", err, helpHint(cmd))
}

// takes describes the values of a type of flag; "" if the error of the value does.
func takes(kind string) string {
	switch kind {
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 30s, 5m or 1h30m (units: ms, s, m, h)"
	case "int", "int32", "int64":
		return "a whole number"
	case "uint", "uint32", "uint64":
		return "a whole number, 0 or more"
	case "float32", "float64":
		return "a number"
	case "stringToString":
		return "NAME=VALUE[,NAME=VALUE...]"
	}
	return ""
}

// Most names that are suggested, and how many letters they may differ in.
const (
	maxNames    = 3
	maxDistance = 3
)

// Nearest returns the names that may have been meant by text, the nearest only.
func Nearest(text string, names []string) []string {
	near := &cobra.Command{}
	for _, name := range names {
		near.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	for near.SuggestionsMinimumDistance = 1; near.SuggestionsMinimumDistance <= min(maxDistance, max(1, len(text)/2)); near.SuggestionsMinimumDistance++ {
		if found := near.SuggestionsFor(text); len(found) > 0 {
			return found[:min(len(found), maxNames)]
		}
	}
	return nil
}

// DidYouMean returns the end of an error about a name that is not known: "" where none is near.
func DidYouMean(text string, names []string) string { return didYouMean(text, "", names) }

func didYouMean(text, before string, names []string) string {
	near := Nearest(text, names)
	for i := range near {
		near[i] = fmt.Sprintf("%q", before+near[i])
	}
	if len(near) == 0 {
		return ""
	}
	return ": did you mean " + strings.Join(near, " or ") + "?"
}

// Or lists valid values: "a, b or c".
func Or(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
