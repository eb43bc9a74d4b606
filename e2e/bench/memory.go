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

// memory is the memory of a process as the kernel counts it, in MB (2^20 bytes).
type memory struct {
	rss       float64 // pages in memory, shared ones whole
	pss       float64 // the same, with shared pages divided by the processes that share them
	anonymous float64 // of pss: anonymous pages
	file      float64 // of pss: pages of files, the executable included
	shared    float64 // of pss: shared memory
}

func (m memory) String() string {
	return fmt.Sprintf("%.0f MB resident (%.0f anonymous, %.0f of files, %.0f shared)", m.rss, m.anonymous, m.file, m.shared)
}

// memoryOf reads /proc/PID/smaps_rollup. It is expensive: the kernel walks all pages.
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
		return m, fmt.Errorf("smaps_rollup: %d of the expected lines are missing", len(into))
	}
	return m, nil
}

// memoryOfAll returns the sum over a process and its descendants. Shared pages count once, by their pss.
func memoryOfAll(pid int) (sum memory, err error) {
	for _, p := range descendants(pid) {
		m, err := memoryOf(p)
		if err != nil {
			continue // the process has ended
		}
		sum.rss, sum.pss, sum.anonymous, sum.file, sum.shared = sum.rss+m.rss, sum.pss+m.pss, sum.anonymous+m.anonymous, sum.file+m.file, sum.shared+m.shared
	}
	if sum.rss == 0 {
		err = fmt.Errorf("process %d has ended", pid)
	}
	return sum, err
}

// calm waits until the memory of a process stops falling, as the runtime returns it slowly, and returns it.
func calm(pid int) (memory, error) {
	settled(pid)
	return memoryOf(pid)
}

// peak samples the memory of a process until ctx ends, and then returns the maximum in MB.
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
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) // fails for other users' processes: then the peak is that since their start
	}
}

// peaks returns the sum of the peak memory of processes, in MB, as the kernel recorded it.
func peaks(pids []int) (sum float64) {
	for _, pid := range pids {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // empty if the process has ended, or without /proc
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
