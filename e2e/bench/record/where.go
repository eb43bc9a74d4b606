package record

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// Where describes the machine and the software of a measurement. Unknown fields are empty.
type Where struct {
	Version  string `json:"version"` // of the measured binary, from rowlock version
	Commit   string `json:"commit"`
	Dirty    bool   `json:"dirty,omitempty"` // the tree had uncommitted changes
	Go       string `json:"go"`
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	MemoryMB int    `json:"memoryMB"`
	Kernel   string `json:"kernel"`
	Database string `json:"database"` // "SQLite 3.50.4", "PostgreSQL 15.8"
	Load     string `json:"load"`     // load averages when the run began
}

// Here describes this machine, and the source tree of the working directory.
func Here() Where {
	w := Where{Go: runtime.Version(), Cores: runtime.NumCPU(), Kernel: runtime.GOOS + "/" + runtime.GOARCH}
	w.Commit = output("git", "rev-parse", "HEAD")
	w.Dirty = output("git", "status", "--porcelain", "--untracked-files=no") != ""
	if text := read("/proc/sys/kernel/osrelease"); text != "" {
		w.Kernel = "Linux " + text
	}
	w.CPU = valueOf(read("/proc/cpuinfo"), "model name")
	if kb, _, ok := strings.Cut(valueOf(read("/proc/meminfo"), "MemTotal"), " "); ok {
		n, _ := strconv.Atoi(kb) // 0: unknown
		w.MemoryMB = n >> 10
	}
	if load := strings.Fields(read("/proc/loadavg")); len(load) > 3 {
		w.Load = strings.Join(load[:3], " ")
	}
	return w
}

// Binary runs the measured binary to find its version.
func (w *Where) Binary(path string) error {
	w.Version = output(path, "version")
	if w.Version == "" {
		return fmt.Errorf("%s prints no version", path)
	}
	return nil
}

func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// valueOf finds "key   : value".
func valueOf(text, key string) string {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
