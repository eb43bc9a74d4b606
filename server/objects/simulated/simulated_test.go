package simulated_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

var (
	oneSeed  = flag.Uint64("simulated.seed", 0, "run this seed alone, and print its steps")
	allSeeds = flag.Int("simulated.seeds", seedsOf("ROWLOCK_SIMULATED_SEEDS", 150), "how many seeds to run")
	first    = flag.Uint64("simulated.first", 1, "the first of them")
)

func seedsOf(variable string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return usual
}

// TestSeeds judges many runs.
func TestSeeds(t *testing.T) {
	if *oneSeed != 0 {
		r := play(t, *oneSeed, nil)
		t.Logf("%s\n%s", r.cfg, strings.Join(r.trace, "\n"))
		if r.violation != "" {
			t.Error(report(t, *oneSeed, r))
		}
		return
	}
	steps, commits := 0, int64(0)
	for seed := *first; seed < *first+uint64(*allSeeds); seed++ {
		r := play(t, seed, nil)
		steps, commits = steps+len(r.trace), commits+r.head()
		if r.violation != "" {
			t.Fatal(report(t, seed, r))
		}
	}
	t.Logf("%d seeds, %d lines of traces, %d commits", *allSeeds, steps, commits)
	if commits < int64(*allSeeds) {
		t.Errorf("only %d commits", commits)
	}
}

// TestSameRun: a seed is the same run each time.
func TestSameRun(t *testing.T) {
	for seed := *first; seed < *first+uint64(min(*allSeeds/10, 500)); seed++ {
		a, b := play(t, seed, nil), play(t, seed, nil)
		for i := range max(len(a.trace), len(b.trace)) {
			if i >= len(a.trace) || i >= len(b.trace) || a.trace[i] != b.trace[i] {
				t.Fatalf("seed %d goes two ways from line %d on:\n%s\n\n%s", seed, i, lines(a.trace, i), lines(b.trace, i))
			}
		}
	}
}

func lines(trace []string, around int) string {
	return strings.Join(trace[max(0, min(around-5, len(trace))):min(around+5, len(trace))], "\n")
}

// report describes a violation by the fewest steps with which it was seen.
func report(t *testing.T, seed uint64, r *world) string {
	steps, r, tries := shrink(t, seed, r)
	return fmt.Sprintf("seed %d: %s\n\n%s\n\n%s\n\n%d steps, after %d attempts with fewer. To run the seed again, with all of its steps:\n\n\tgo test ./server/objects/simulated -run TestSeeds -simulated.seed=%d",
		seed, r.violation, r.cfg, strings.Join(r.trace, "\n"), len(steps), tries, seed)
}

// shrink leaves out steps as long as anything is violated.
func shrink(t *testing.T, seed uint64, r *world) (steps []step, least *world, tries int) {
	_, steps = draw(seed)
	steps, least = steps[:min(r.reached, len(steps))], r
	try := func(fewer []step) bool {
		tries++
		if w := play(t, seed, fewer); w.violation != "" {
			steps, least = fewer[:min(w.reached, len(fewer))], w
			return true
		}
		return false
	}
	for size := max(1, len(steps)/2); size > 0 && tries < 3000; {
		smaller := false
		for at := 0; at < len(steps) && tries < 3000; {
			if !try(slices.Delete(slices.Clone(steps), at, min(at+size, len(steps)))) {
				at += size
			} else {
				smaller = true
			}
		}
		if size == 1 && !smaller {
			break
		}
		if !smaller {
			size /= 2
		}
	}
	return steps, least, tries
}

// step is one action of the simulation. Its numbers select among those that are possible then.
type step struct {
	do         action
	a, b, c, d uint32
}

type action int

const (
	answerCall action = iota
	executeCall
	pass
	startWrite
	startGet
	startList
	nextPage
	turnWatcher
	disconnectWatcher
	giveHint
	burst
	giveUp
	startPast
	startServer
	killServer
	stopServer
	compactTo
	takeLead
	lateCommit
	upkeep
	failOver
	actions
)

// usual has the weight of each action.
var usual = [actions]int{
	answerCall: 40, executeCall: 6, pass: 12, startWrite: 16, startGet: 3, startList: 5, nextPage: 4, turnWatcher: 16, disconnectWatcher: 2, giveHint: 8, burst: 3, giveUp: 1, startPast: 1,
	startServer: 3, killServer: 1, stopServer: 1, compactTo: 1, takeLead: 1, lateCommit: 1, upkeep: 1, failOver: 1,
}

// draw makes the run of a seed. Seeds differ in what happens often.
func draw(seed uint64) (config, []step) {
	rng := rand.New(rand.NewPCG(seed, 28))
	cfg := newConfig(rng)
	weights, sum := usual, 0
	for i := range weights {
		switch rng.IntN(6) {
		case 0:
			weights[i] = (weights[i] + 3) / 4
		case 1:
			weights[i] *= 3
		}
		if i >= int(killServer) && rng.IntN(2) == 0 {
			weights[i] = 0
		}
		sum += weights[i]
	}
	steps := make([]step, 100+rng.IntN(500))
	for i := range steps {
		n := rng.IntN(sum)
		for n >= weights[steps[i].do] {
			n -= weights[steps[i].do]
			steps[i].do++
		}
		steps[i].a, steps[i].b, steps[i].c, steps[i].d = rng.Uint32(), rng.Uint32(), rng.Uint32(), rng.Uint32()
	}
	return cfg, steps
}

// play runs the steps of a seed, or others in their place, until something is violated.
func play(t *testing.T, seed uint64, steps []step) (w *world) {
	cfg, all := draw(seed)
	if steps == nil {
		steps = all
	}
	synctest.Test(t, func(*testing.T) {
		w = &world{cfg: cfg, db: memory.New(memory.Config{}), leaders: map[string]*driver{}, writes: map[string]*write{}}
		w.keys = map[sqlstore.Key][]int64{}
		w.outside = w.db.Open()
		for i := range cfg.servers {
			w.servers = append(w.servers, w.start(i, 1))
		}
		for i := range cfg.watchers {
			w.watchers = append(w.watchers, &watcher{number: i, wish: w.wish(uint32(seed) + uint32(i)*3)})
		}
		w.settle()
		for i, s := range steps {
			if w.violation != "" {
				break
			}
			w.reached = i + 1
			w.step(s)
			w.settle()
		}
		if w.violation == "" {
			w.heal()
		}
		w.end()
	})
	return w
}
