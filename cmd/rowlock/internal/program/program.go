// Package program knows what this program is: its version, and the names by which it
// may be called.
package program

import (
	"path/filepath"
	"runtime"
	"strings"
)

// Version is set by the linker for releases.
var Version = "v0.1.0"

// Names by which test environments and scripts look for a control plane's programs. This
// binary is each of them where its file is called so.
const (
	APIServer = "kube-apiserver"
	Etcd      = "etcd"
)

// NameOf is what this process is called, by its file.
func NameOf(path string) string {
	name := filepath.Base(path)
	if runtime.GOOS == "windows" {
		name = strings.TrimSuffix(strings.ToLower(name), ".exe")
	}
	return name
}

// ConvertPlugin is how kubectl finds the command: as a program of this name.
const ConvertPlugin = "kubectl-convert"

// HistoryPlugin is how kubectl finds the commands about the past: as a program of this
// name. historyCompletion is the one that it asks to complete their command lines.
const (
	HistoryPlugin     = "kubectl-rowlock"
	HistoryCompletion = "kubectl_complete-rowlock"
)

// Exe is what a program's file is called.
func Exe(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// Build is what this program adds to the version that a server says it is.
func Build() string { return "rowlock." + Version }

// DefaultDataDir is --data-dir of serve and init.
const DefaultDataDir = "./rowlock-data"
