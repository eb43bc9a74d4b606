//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/planted"
)

// plantedFlag is a flag that may have a value.
type plantedFlag struct {
	set   bool
	names []string
}

func (p *plantedFlag) String() string { return strings.Join(p.names, ",") }

// IsBoolFlag reports whether the flag needs no value.
func (*plantedFlag) IsBoolFlag() bool { return true }

func (p *plantedFlag) Set(text string) error {
	p.set = text != "false"
	if text != "true" && text != "false" && text != "all" {
		p.names = strings.Split(text, ",")
	}
	return nil
}

// plant looks for planted faults. It exits with 1 if one is not found.
func (s *settings) plant(ctx context.Context, stdout, stderr io.Writer) int {
	program, err := os.Executable()
	if err != nil {
		fmt.Fprintln(stderr, "robustness:", err)
		return 2
	}
	root, err := moduleRoot()
	if err != nil {
		fmt.Fprintln(stderr, "robustness:", err)
		return 2
	}
	o := planted.Options{Root: root, Program: program, Names: s.planted.names, Seed: s.seed, Keep: s.keep, For: time.Duration(s.minutes * float64(time.Minute)), Out: stdout}
	if s.ways != "" {
		o.Ways = strings.Split(s.ways, ",")
	}
	results, err := planted.Run(ctx, o)
	missed := 0
	fmt.Fprintln(stdout)
	for _, r := range results {
		fmt.Fprintln(stdout, r)
		if len(r.Found) == 0 {
			missed++
		}
	}
	fmt.Fprintf(stdout, "%d of %d planted faults were found\n", len(results)-missed, len(results))
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "robustness:", err)
		return 2
	case missed > 0:
		return 1
	}
	return 0
}

// moduleRoot returns the folder of the module that the program was started in.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "server", "objects", "simulated")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("-planted has to be started in a checkout of the module")
		}
	}
}
