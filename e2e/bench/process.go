package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// resident returns the resident memory of a process in MB.
func resident(pid int) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		kb, _ := strconv.ParseFloat(psColumn(pid, "rss="), 64)
		return kb / 1024
	}
	for _, line := range strings.Split(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// processorTime returns the processor time of a process. On a shared machine it is more stable than a rate.
func processorTime(pid int) time.Duration {
	own, _ := processorTimeWithEnded(pid)
	return own
}

// processorTimeWithEnded also returns the processor time of children that have ended, such as sessions of
// PostgreSQL.
func processorTimeWithEnded(pid int) (own, ended time.Duration) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return clock(psColumn(pid, "time=")), 0
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, 0
	}
	var ticks [4]int64 // user, system, and both of children
	for i := range ticks {
		ticks[i], _ = strconv.ParseInt(fields[11+i], 10, 64)
	}
	const tick = 10 * time.Millisecond // of USER_HZ
	return time.Duration(ticks[0]+ticks[1]) * tick, time.Duration(ticks[2]+ticks[3]) * tick
}

// processorTimes returns the sum of several processes.
func processorTimes(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		sum += processorTime(pid)
	}
	return sum
}

// psColumn returns a column of ps for a process, on systems without /proc.
func psColumn(pid int, column string) string {
	out, _ := exec.Command("ps", "-o", column, "-p", strconv.Itoa(pid)).Output() // none: nothing is known
	return strings.TrimSpace(string(out))
}

// clock parses [[days-]hours:]minutes:seconds.
func clock(text string) time.Duration {
	days, rest, found := strings.Cut(text, "-")
	if !found {
		days, rest = "0", text
	}
	n, _ := strconv.ParseFloat(days, 64)
	seconds := 0.0
	for _, part := range strings.Split(rest, ":") {
		v, _ := strconv.ParseFloat(part, 64)
		seconds = seconds*60 + v
	}
	return time.Duration((n*24*3600 + seconds) * float64(time.Second))
}
