//go:build unix

package faults

import (
	"testing"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// TestDiffer: each object that was to be copied has a copy with its content, and no other object has one.
func TestDiffer(t *testing.T) {
	row := func(name string, state history.State) history.Row {
		return history.Row{Key: history.Key{Resource: "configmaps", Namespace: "red", Name: name}, State: &state}
	}
	value := func(v string) map[string]string { return map[string]string{"v": v} }
	a, b := row("a", history.State{On: true, Fields: value("1")}), row("b", history.State{On: true, Fields: value("2")})
	elsewhere := b
	elsewhere.Key.Namespace = "green"
	for name, c := range map[string]struct {
		want, got []history.Row
		wrong     string
	}{
		"equal":     {[]history.Row{a, b}, []history.Row{b, a}, ""},
		"not meant": {[]history.Row{a, row("off", history.State{}), row("going", history.State{On: true, Going: true}), elsewhere}, []history.Row{a, row("own", history.State{})}, ""},
		"missing":   {[]history.Row{a, b}, []history.Row{a}, "a copy lacks configmaps/red/b"},
		"too many":  {[]history.Row{a}, []history.Row{a, b}, "a copy has configmaps/red/b, which was not to be copied"},
		"other":     {[]history.Row{a}, []history.Row{row("a", history.State{On: true, Fields: value("2")})}, "the copy of configmaps/red/a has on=true map[v:2], and the object has on=true map[v:1]"},
		"unlabeled": {[]history.Row{a}, []history.Row{row("a", history.State{Fields: value("1")})}, "the copy of configmaps/red/a has on=false map[v:1], and the object has on=true map[v:1]"},
	} {
		if got := text(differ(c.want, c.got)); got != c.wrong {
			t.Errorf("%s: %q, want %q", name, got, c.wrong)
		}
	}
}
