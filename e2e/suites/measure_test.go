package suites

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// cost holds the cost of suites: seconds that passed, seconds of processors and megabytes of memory
// of the programs of the control plane, where the system reports it.
type cost struct {
	took, processor, memory float64
}

func (c cost) and(d cost) cost {
	return cost{took: c.took + d.took, processor: c.processor + d.processor, memory: max(c.memory, d.memory)}
}

func (c cost) String() string {
	return fmt.Sprintf("%.1f s, %.1f s of processors and at most %.0f MB for control planes", c.took, c.processor, c.memory)
}

func ratio(ours, theirs float64) float64 {
	if theirs == 0 {
		return 0
	}
	return ours / theirs
}

// watcher looks at the processes whose program is in a folder.
type watcher struct {
	folder string
	stop   chan struct{}
	done   sync.WaitGroup

	most float64            // megabytes, of all at once
	used map[string]float64 // seconds of processors, by process
}

func watch(folder string) *watcher {
	w := &watcher{folder: folder, stop: make(chan struct{}), used: map[string]float64{}}
	w.done.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				w.look()
			}
		}
	})
	return w
}

func (w *watcher) end() (megabytes, seconds float64) {
	close(w.stop)
	w.done.Wait()
	for _, s := range w.used {
		seconds += s
	}
	return w.most, seconds
}

// look adds up the private memory of a process, and its part of shared memory.
func (w *watcher) look() {
	now := 0.0
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		line, err := os.ReadFile(p + "/cmdline")
		program, _, _ := strings.Cut(string(line), "\x00")
		if err != nil || filepath.Dir(program) != w.folder {
			continue
		}
		rollup, _ := os.ReadFile(p + "/smaps_rollup") // it may have ended
		for line := range strings.Lines(string(rollup)) {
			if kilobytes, ok := strings.CutPrefix(line, "Pss:"); ok {
				n, _ := strconv.ParseFloat(strings.Fields(kilobytes)[0], 64)
				now += n / 1024
			}
		}
		stat, _ := os.ReadFile(p + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 12 {
			user, _ := strconv.ParseFloat(f[11], 64)
			system, _ := strconv.ParseFloat(f[12], 64)
			w.used[p] = (user + system) / 100 // clock ticks of Linux
		}
	}
	w.most = max(w.most, now)
}
