package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// descendants returns a process, its children, and theirs.
func descendants(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // empty without /proc
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		// "12 (a name) S 1 ...": names may hold anything.
		before, after, _ := strings.Cut(string(data[:]), " (")
		fields := strings.Fields(after[strings.LastIndexByte(after, ')')+1:])
		own, err := strconv.Atoi(before)
		if err != nil || len(fields) < 2 {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], own)
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// behind returns the process that serves a port of this machine, and the local processes to which it is connected
// by TCP: an API server and its database. It returns none where it cannot find out.
func behind(port int) []int {
	listening, connected := sockets()
	owners := owners()
	var all []int
	for ports := []int{port}; len(ports) > 0; ports = ports[1:] {
		pid, ok := owners[listening[ports[0]]]
		if !ok || pid == os.Getpid() || slices.Contains(all, pid) {
			continue
		}
		all = append(all, pid)
		for inode, remote := range connected {
			if owners[inode] == pid {
				ports = append(ports, remote)
			}
		}
	}
	return all
}

// sockets returns the listening sockets by port, and the local remote port of each connected socket.
func sockets() (listening map[int]string, connected map[string]int) {
	listening, connected = map[int]string{}, map[string]int{}
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, _ := os.ReadFile(path) // empty without /proc
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) < 10 {
				continue
			}
			var local, remote int
			var address string
			if _, err := fmt.Sscanf(f[1][strings.IndexByte(f[1], ':')+1:], "%x", &local); err != nil {
				continue // the heading
			}
			address, port, _ := strings.Cut(f[2], ":")
			_, _ = fmt.Sscanf(port, "%x", &remote)
			switch inode := f[9]; {
			case f[3] == "0A":
				listening[local] = inode
			case f[3] == "01" && (strings.HasSuffix(address, "0100007F") || strings.HasSuffix(address, "01000000")):
				connected[inode] = remote
			}
		}
	}
	return listening, connected
}

// owners returns the process of each socket, as far as permissions allow: of processes that share a socket, the
// one with the lowest ID, which usually started the others.
func owners() map[string]int {
	out := map[string]int{}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		to, err := os.Readlink(link)
		inode, ok := strings.CutPrefix(to, "socket:[")
		if err != nil || !ok {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		inode = strings.TrimSuffix(inode, "]")
		if first, known := out[inode]; err == nil && (!known || pid < first) {
			out[inode] = pid
		}
	}
	return out
}
