//go:build unix

// Package planted holds small patches of the product, each of which is a known fault of systems like it, and tries whether
// they are found: first by the simulation of package server/objects/simulated, then by the program that this package is part of,
// with the same settings for each patch.
//
//	planted.go  the patches, and Run
//	tree.go     a copy of the module, into which they go
//	*.patch     the fault, in a sentence, and the difference
package planted

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed *.patch
var files embed.FS

// Patch is one fault.
type Patch struct {
	Name  string
	About string // the fault, in a sentence
	Diff  []byte
}

// Nothing is the name of no patch: a violation without one is a fault of the product, or of the judge.
const Nothing = "nothing"

// All returns all patches, by name.
func All() ([]Patch, error) {
	names, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var all []Patch
	for _, n := range names {
		text, err := files.ReadFile(n.Name())
		if err != nil {
			return nil, err
		}
		about, _, ok := bytes.Cut(text, []byte("\n\ndiff --git "))
		if !ok {
			return nil, fmt.Errorf("%s does not begin with a sentence on what is wrong, and an empty line", n.Name())
		}
		all = append(all, Patch{Name: strings.TrimSuffix(n.Name(), ".patch"), About: string(about), Diff: text[len(about)+2:]})
	}
	return all, nil
}

// Options select the patches and runs of Run.
type Options struct {
	Root    string        // the folder of the module
	Program string        // an executable of the robustness program
	Names   []string      // of patches; none: all
	Ways    []string      // of finding a fault, in order: simulation, sqlite, postgres; none: all
	For     time.Duration // how long to look for each fault, builds included; default 10 minutes
	Seed    uint64        // of the program's runs
	Keep    bool          // look for a fault in each way, also after it was found
	Args    []string      // further arguments of the program
	Out     io.Writer
}

// Found describes how a fault was found.
type Found struct {
	Way   string
	By    string // the properties that are violated
	After time.Duration
	Seed  string
}

// Result is the outcome of one patch.
type Result struct {
	Patch
	Found []Found
	Tried time.Duration
}

// Run plants the faults in a copy of the module, one after the other, and looks for each. It returns an error if a patch
// could not be tried; a fault that is not found is a Result without Found.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	if o.For == 0 {
		o.For = 10 * time.Minute
	}
	if len(o.Ways) == 0 {
		o.Ways = []string{"simulation", "sqlite", "postgres"}
	}
	patches, err := choose(o.Names)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "planted-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	tree := tree{dir: filepath.Join(dir, "rowlock")}
	if err := tree.copy(ctx, o.Root); err != nil {
		return nil, err
	}
	for _, p := range patches {
		r, err := try(ctx, &o, &tree, p, dir)
		if err != nil {
			return results, fmt.Errorf("%s: %w", p.Name, err)
		}
		results = append(results, r)
		fmt.Fprintln(o.Out, r)
	}
	return results, nil
}

func choose(names []string) ([]Patch, error) {
	all, err := All()
	if err != nil || len(names) == 0 {
		return all, err
	}
	var some []Patch
	for _, name := range names {
		if name == Nothing {
			some = append(some, Patch{Name: Nothing, About: "The product as it is."})
			continue
		}
		i := slices.IndexFunc(all, func(p Patch) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no %s.patch", name)
		}
		some = append(some, all[i])
	}
	return some, nil
}

// String returns a line of a table.
func (r Result) String() string {
	if len(r.Found) == 0 {
		return fmt.Sprintf("%-32s NOT FOUND in %s", r.Name, r.Tried.Round(time.Second))
	}
	var ways []string
	for _, f := range r.Found {
		ways = append(ways, fmt.Sprintf("%s: %s, after %s, seed %s", f.Way, f.By, f.After.Round(100*time.Millisecond), f.Seed))
	}
	return fmt.Sprintf("%-32s %s", r.Name, strings.Join(ways, "; "))
}

// try plants one fault, and looks for it until it is found.
func try(ctx context.Context, o *Options, tree *tree, p Patch, dir string) (r Result, err error) {
	began := time.Now()
	r.Patch = p
	fmt.Fprintf(o.Out, "%s: %s\n", p.Name, p.About)
	if len(p.Diff) > 0 {
		if err := tree.apply(ctx, p.Diff, false); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, tree.apply(context.WithoutCancel(ctx), p.Diff, true)) }()
	}
	binary := ""
	for n, way := range o.Ways {
		if len(r.Found) > 0 && !o.Keep {
			break
		}
		var f *Found
		if way == "simulation" {
			f, err = simulate(ctx, tree, dir)
		} else {
			if binary == "" {
				binary = filepath.Join(dir, "bin", "rowlock")
				if err := tree.build(ctx, binary); err != nil {
					return r, err
				}
			}
			left := o.For - time.Since(began)
			f, err = o.run(ctx, binary, way, left/time.Duration(len(o.Ways)-n), dir)
		}
		if err != nil {
			return r, err
		}
		if f != nil {
			f.Way = way
			r.Found = append(r.Found, *f)
		}
	}
	r.Tried = time.Since(began)
	return r, nil
}

// simulateFor is the duration of the simulation, which is enough for thousands of seeds.
const simulateFor = 40 * time.Second

var seedLine = regexp.MustCompile(`(?m)seed (\d+): (.*)`)

// simulate runs the simulation in the tree.
func simulate(ctx context.Context, tree *tree, dir string) (*Found, error) {
	test := filepath.Join(dir, "bin", "simulated.test")
	if err := tree.run(ctx, "go", "test", "-trimpath", "-c", "-o", test, "./server/objects/simulated"); err != nil {
		return nil, err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, simulateFor)
	defer cancel()
	cmd := exec.CommandContext(ctx, test, "-test.run", "TestSeeds$", "-simulated.seeds", "1000000")
	cmd.Dir = filepath.Join(tree.dir, "server", "objects", "simulated")
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil || err == nil {
		return nil, nil
	}
	f := &Found{By: "the simulated store panics", After: time.Since(began), Seed: "1"}
	if m := seedLine.FindSubmatch(out); m != nil {
		f.Seed, f.By = string(m[1]), string(m[2][:min(len(m[2]), 120)])
	}
	return f, nil
}

var violated = regexp.MustCompile(`^VIOLATION of ([^:\n]*)`)

// run runs the program against a binary, until it sees a violation or the time is over.
func (o *Options) run(ctx context.Context, binary, store string, for_ time.Duration, dir string) (*Found, error) {
	for_ = max(for_, 6*time.Second) // a tenth of a minute
	began := time.Now()
	over, stop := context.WithTimeout(ctx, for_+time.Minute) // besides start and judgement
	defer stop()
	seed := fmt.Sprint(max(1, o.Seed))
	args := append([]string{"-binary", binary, "-store", store, "-faults", "all", "-seed", seed, "-minutes", fmt.Sprintf("%.1f", for_.Minutes()), "-out", filepath.Join(dir, "out")}, o.Args...)
	cmd := exec.CommandContext(over, o.Program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it ends the processes that it has started
	cmd.WaitDelay = time.Minute
	seen := &lines{stop: stop}
	cmd.Stdout, cmd.Stderr = seen, seen
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case len(seen.by) > 0:
		return &Found{By: strings.Join(seen.by, ", "), After: seen.at.Sub(began), Seed: seed}, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case over.Err() != nil, err == nil:
		return nil, nil
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return &Found{By: "exit code 1", After: time.Since(began), Seed: seed}, nil
	}
	return nil, fmt.Errorf("%s: %w\n%s", store, err, seen.text.Bytes()[max(0, seen.text.Len()-3000):])
}

// lines collects the lines that the program prints. It is stopped at the first violation.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	at   time.Time
	by   []string
	done int // bytes that were looked at
	stop func()
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	for {
		line, _, ok := bytes.Cut(l.text.Bytes()[l.done:], []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.done += len(line) + 1
		m := violated.FindSubmatch(line)
		if m == nil {
			continue
		}
		if len(l.by) == 0 {
			l.at = time.Now()
			l.stop()
		}
		if by := string(m[1]); !slices.ContainsFunc(l.by, func(had string) bool { return had == by || strings.HasPrefix(had, by+" (") }) {
			l.by = append(l.by, by)
			if len(l.by) == 1 {
				l.by[0] += " (" + strings.TrimPrefix(string(line[min(len(line), len(m[0])):min(len(line), len(m[0])+120)]), ": ") + ")"
			}
		}
	}
}
