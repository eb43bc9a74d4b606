package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// memory is what the kernel says that a process holds, in MB (2^20 bytes).
type memory struct {
	rss       float64 // pages in memory, shared ones whole
	pss       float64 // the same, with shared pages by their part
	anonymous float64 // of pss: what the process made
	file      float64 // of pss: pages of files, the program's own among them
	shared    float64 // of pss: shared memory
}

func (m memory) String() string {
	return fmt.Sprintf("%.0f MB resident (%.0f anonymous, %.0f of files, %.0f shared)", m.rss, m.anonymous, m.file, m.shared)
}

// memoryOf reads /proc/PID/smaps_rollup, which makes the kernel walk all pages: not for
// reading again and again.
func memoryOf(pid int) (memory, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return memory{}, err
	}
	return rollup(data)
}

func rollup(data []byte) (m memory, err error) {
	into := map[string]*float64{"Rss": &m.rss, "Pss": &m.pss, "Pss_Anon": &m.anonymous, "Pss_File": &m.file, "Pss_Shmem": &m.shared}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		field := strings.Fields(rest)
		if to, ok := into[name]; ok && len(field) == 2 && field[1] == "kB" {
			kb, err := strconv.ParseFloat(field[0], 64)
			if err != nil {
				return m, fmt.Errorf("smaps_rollup: %s: %w", name, err)
			}
			*to = kb / 1024
			delete(into, name)
		}
	}
	if len(into) > 0 {
		return m, fmt.Errorf("smaps_rollup lacks %d of the lines that are needed", len(into))
	}
	return m, nil
}

// memoryOfAll sums over a process and all it has started; what several of them share
// counts once, as pss does it.
func memoryOfAll(pid int) (sum memory, err error) {
	for _, p := range descendants(pid) {
		m, err := memoryOf(p)
		if err != nil {
			continue // it has ended in the meantime
		}
		sum.rss, sum.pss, sum.anonymous, sum.file, sum.shared = sum.rss+m.rss, sum.pss+m.pss, sum.anonymous+m.anonymous, sum.file+m.file, sum.shared+m.shared
	}
	if sum.rss == 0 {
		err = fmt.Errorf("process %d has no memory: it has ended", pid)
	}
	return sum, err
}

// calm is the memory of a process once it stops falling: a collector gives back slowly.
func calm(pid int) (memory, error) {
	settled(pid)
	return memoryOf(pid)
}

// peak watches how much a process holds, until ctx ends, and then says how much it was at
// most, in MB.
func peak(ctx context.Context, pid int) <-chan float64 {
	out := make(chan float64, 1)
	go func() {
		most := resident(pid)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				out <- max(most, resident(pid))
				return
			case <-tick.C:
				most = max(most, resident(pid))
			}
		}
	}()
	return out
}

// forgetPeaks makes the kernel reset the peak memory of processes.
func forgetPeaks(pids []int) {
	for _, pid := range pids {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) // of another user: the peak since it started
	}
}

// peaks is the most memory that processes held, each at its own moment, in MB, as the kernel remembers it.
func peaks(pids []int) (sum float64) {
	for _, pid := range pids {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it has ended, or there is no /proc
		kb, _ := strconv.ParseFloat(strings.TrimSuffix(valueAfter(string(data), "VmHWM:"), " kB"), 64)
		sum += kb / 1024
	}
	return sum
}

func valueAfter(text, name string) string {
	_, rest, _ := strings.Cut(text, name)
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}
