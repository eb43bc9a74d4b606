package admission_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rowlock/rowlock/server/admission"
)

// ledger is an Observer that records its calls.
type ledger struct{ asked, timed []string }

type entry struct {
	l    *ledger
	name string
}

func (e entry) Observe(seconds float64) {
	if seconds < 0 {
		e.name += " took less than nothing"
	}
	e.l.timed = append(e.l.timed, e.name)
}

func (l *ledger) Plugin(name, phase string, op admission.Operation, rejected bool) admission.Timer {
	l.asked = append(l.asked, fmt.Sprint(name, " ", phase, " ", op, " ", rejected))
	return entry{l, l.asked[len(l.asked)-1]}
}

func (l *ledger) Step(phase string, op admission.Operation, rejected bool) admission.Timer {
	return l.Plugin("step", phase, op, rejected)
}

// picky refuses objects that are named bad.
type picky string

func (p picky) Name() string                   { return string(p) }
func (picky) Handles(admission.Operation) bool { return true }
func (p picky) Admit(ctx context.Context, a *admission.Attributes) error {
	return p.Validate(ctx, a)
}
func (picky) Validate(_ context.Context, a *admission.Attributes) error {
	if a.Name == "bad" {
		return errors.New("refused")
	}
	return nil
}

// TestObserverIsAskedOnce: the Timer of a combination is looked up once, and observes each time.
func TestObserverIsAskedOnce(t *testing.T) {
	l := &ledger{}
	c := admission.NewChain(picky("a"), picky("b"))
	c.Observer = l
	for range 2 {
		for _, name := range []string{"good", "bad"} {
			for _, op := range []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect} {
				at := &admission.Attributes{Operation: op, Name: name}
				if err := c.Admit(t.Context(), at); (err != nil) != (name == "bad") {
					t.Fatal(err)
				}
				if err := c.Validate(t.Context(), at); (err != nil) != (name == "bad") {
					t.Fatal(err)
				}
			}
		}
	}
	var once []string
	for _, name := range []string{"good", "bad"} {
		for _, op := range []string{"CREATE", "UPDATE", "DELETE", "CONNECT"} {
			for _, phase := range []string{"admit", "validate"} {
				if name == "bad" { // the first plugin has refused
					once = append(once, fmt.Sprint("a ", phase, " ", op, " true"), fmt.Sprint("step ", phase, " ", op, " true"))
				} else {
					once = append(once, fmt.Sprint("a ", phase, " ", op, " false"), fmt.Sprint("b ", phase, " ", op, " false"), fmt.Sprint("step ", phase, " ", op, " false"))
				}
			}
		}
	}
	if !slices.Equal(l.asked, once) {
		t.Errorf("asked for %q, not once each for %q", l.asked, once)
	}
	if want := append(slices.Clone(once), once...); !slices.Equal(l.timed, want) {
		t.Errorf("timed %q instead of %q", l.timed, want)
	}
}
