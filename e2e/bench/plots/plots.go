// Package plots draws records of runs as SVG files: bars with their spread, readable on light and
// on dark pages.
//
// The files need neither fonts nor scripts nor a library, and the same records give the same bytes.
package plots

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/rowlock/rowlock/e2e/bench/record"
)

// Draw writes one file into dir for each group of figures, and returns their names. Each of several
// records has a bar.
func Draw(dir string, runs []*record.Run) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var names []string
	for _, c := range charts(runs) {
		name := slug(c.group) + ".svg"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(c.svg()), 0o644); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// chart is a group: rows of bars, one bar for each server of each record.
type chart struct {
	group   string
	caption []string // one line for each machine and version
	series  []string // the subjects of the bars; one color each
	rows    []row
}

// row is a figure. Each row has its own scale, as units differ.
type row struct {
	name string
	bars []bar
}

type bar struct {
	series int
	record.Figure
}

// charts returns the groups, rows and series in the order in which they were measured.
func charts(runs []*record.Run) []*chart {
	var all []*chart
	for _, run := range runs {
		for _, f := range run.Figures {
			c := find(&all, func(c *chart) bool { return c.group == f.Group }, func() *chart { return &chart{group: f.Group, caption: captionOf(runs)} })
			who := f.Server
			if len(runs) > 1 {
				who = strings.TrimSpace(run.Name + " " + f.Server)
			}
			who = cmp.Or(who, "rowlock")
			if !slices.Contains(c.series, who) {
				c.series = append(c.series, who)
			}
			i := slices.IndexFunc(c.rows, func(r row) bool { return r.name == f.Name })
			if i < 0 {
				i = len(c.rows)
				c.rows = append(c.rows, row{name: f.Name})
			}
			c.rows[i].bars = append(c.rows[i].bars, bar{slices.Index(c.series, who), f})
		}
	}
	return all
}

func find(all *[]*chart, is func(*chart) bool, make func() *chart) *chart {
	if i := slices.IndexFunc(*all, is); i >= 0 {
		return (*all)[i]
	}
	*all = append(*all, make())
	return (*all)[len(*all)-1]
}

// captionOf names the measurement and the machine.
func captionOf(runs []*record.Run) []string {
	var parts []string
	for _, r := range runs {
		commit := r.Commit[:min(len(r.Commit), 10)]
		if r.Dirty {
			commit += "+"
		}
		text := fmt.Sprintf("%s, %s, %d cores, %s, %s", r.Taken.Format("2006-01-02"), cmp.Or(commit, r.Version), r.Cores, cmp.Or(r.CPU, r.Kernel), r.Database)
		if r.Load != "" {
			text += ", load at the beginning " + r.Load
		}
		if !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	return parts
}

// slug makes a file name.
func slug(group string) string {
	words := strings.FieldsFunc(strings.ToLower(group), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return cmp.Or(strings.Join(words, "-"), "figures")
}
