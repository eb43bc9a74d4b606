package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/plots"
	"github.com/rowlock/rowlock/e2e/bench/record"
	"github.com/rowlock/rowlock/e2e/harness"
)

// figure prints a figure and adds it to the record of the run.
func (e *env) figure(f record.Figure) {
	text := f.String()
	if f.Goal != 0 {
		text += "   goal " + record.Number(f.Goal) + map[bool]string{true: ", met", false: ", NOT met"}[f.Met()]
	}
	name := f.Name
	if f.Server != "" {
		name += ", " + f.Server
	}
	e.report(f.Group+": "+name, "%s", text)
	e.record.Add(f)
}

// promised is figure with a goal.
func (e *env) promised(f record.Figure, goal float64) {
	f.Goal = goal
	e.figure(f)
}

// rated adds the rate and the latencies of a result to the record, without printing them.
func (e *env) rated(name string, r result) {
	e.record.Add(record.Of("rates", name, "1/s", record.Higher, r.rate))
	e.record.Add(record.Of("latencies", name+", p50", "ms", record.Lower, p50(r)))
	e.record.Add(record.Of("latencies", name+", p99", "ms", record.Lower, p99(r)))
	e.record.Add(record.Of("processor time of one request", name, "ms", record.Lower, millis(r.cpu)))
}

func sortedFloats(of []float64) []float64 {
	slices.Sort(of)
	return of
}

// begin begins the record of a run.
func (e *env) begin(name string) {
	e.record.Name, e.record.Taken, e.record.Command = name, time.Now().UTC().Truncate(time.Second), withoutSecrets(os.Args[1:])
	e.record.Where = record.Here()
}

// withoutSecrets removes URLs in -against, passwords of databases, and the folders of files: they identify
// the user, and not the run.
func withoutSecrets(args []string) []string {
	shown := map[string]func(string) string{
		"against": bareURLs, "store": bareURL, "record": filepath.Base, "seed": filepath.Base, "plots": filepath.Base, "profiles": filepath.Base, "builds": buildNames,
	}
	out := slices.Clone(args)
	for i, arg := range out {
		name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		show := shown[name]
		switch {
		case show == nil || !strings.HasPrefix(arg, "-"):
		case joined:
			out[i] = "-" + name + "=" + show(value)
		case i+1 < len(out):
			out[i+1] = show(out[i+1])
		}
	}
	return out
}

// buildNames returns the entries of -builds without the folders of the binaries.
func buildNames(list string) string {
	var bare []string
	for _, entry := range strings.Split(list, ",") {
		name, path, _ := strings.Cut(entry, "=")
		bare = append(bare, name+"="+filepath.Base(path))
	}
	return strings.Join(bare, ",")
}

// bareURLs returns the entries of a list of [NAME@]URL[=CREDENTIAL] without credentials.
func bareURLs(list string) string {
	var bare []string
	for _, entry := range strings.Split(list, ",") {
		name := named.FindString(entry)
		at, credential, _ := strings.Cut(entry[len(name):], "=")
		if strings.Contains(credential, "@") {
			at = "" // part of a password; the URL has the rest
		}
		bare = append(bare, name+bareURL(at))
	}
	return strings.Join(bare, ",")
}

// bareURL removes everything that may be a credential from a URL. It keeps only the scheme if the URL is
// ambiguous, for example because a password is not escaped.
func bareURL(text string) string {
	u, err := url.Parse(text)
	if err == nil && u.Host != "" && !strings.ContainsAny(u.Host+u.Path, "@=,") {
		return strings.TrimSuffix(u.Scheme+"://"+u.Host+u.Path, "/")
	}
	scheme, _, ok := strings.Cut(text, ":")
	switch {
	case ok:
		return scheme + ":"
	case text == "postgres" || text == "": // words of -store
		return text
	}
	return "(no URL)"
}

// where adds the versions of the binary and the database, which are known only at the end of a run.
func (e *env) where() error {
	bin, err := harness.Binary()
	if err != nil {
		return err
	}
	store := e.store
	if e.pg != nil {
		store = e.pg.URL("postgres")
	}
	if e.record.Database, err = databaseVersion(e.ctx, store); err != nil {
		return err
	}
	return e.record.Binary(bin)
}

// keep writes the record and its plots if the flags name files for them.
func (e *env) keep(file, dir string) error {
	if file != "" {
		if err := e.record.Write(file); err != nil {
			return fmt.Errorf("-record: %w", err)
		}
	}
	if dir == "" {
		return nil
	}
	return draw(dir, &e.record)
}

// redraw plots existing records.
func redraw(dir string, files []string) error {
	if dir == "" {
		return fmt.Errorf("%q: arguments are records to plot; -plots must name a folder for the plots", files)
	}
	var runs []*record.Run
	for _, path := range files {
		r, err := record.Read(path)
		if err != nil {
			return err
		}
		if r.Name == "" {
			r.Name = strings.TrimSuffix(filepath.Base(path), ".json")
		}
		runs = append(runs, r)
	}
	return draw(dir, runs...)
}

func draw(dir string, runs ...*record.Run) error {
	names, err := plots.Draw(dir, runs)
	if err != nil {
		return fmt.Errorf("-plots: %w", err)
	}
	for _, name := range names {
		fmt.Println(filepath.Join(dir, name))
	}
	return nil
}
