// Package program describes this program: its version, and the names that it may be
// started by.
package program

import (
	"path/filepath"
	"runtime"
	"strings"
)

// Version is set by the linker for releases.
var Version = "v0.1.0"

// Names under which test environments and scripts look for the programs of a control plane. The binary acts as the
// program whose name its file has.
const (
	APIServer = "kube-apiserver"
	Etcd      = "etcd"
)

// NameOf returns the name that the process was started by.
func NameOf(path string) string {
	name := filepath.Base(path)
	if runtime.GOOS == "windows" {
		name = strings.TrimSuffix(strings.ToLower(name), ".exe")
	}
	return name
}

// ConvertPlugin is the name by which kubectl finds the convert command.
const ConvertPlugin = "kubectl-convert"

// HistoryPlugin is the name by which kubectl finds the commands about the past. HistoryCompletion is the
// program that kubectl runs to complete their command lines.
const (
	HistoryPlugin     = "kubectl-rowlock"
	HistoryCompletion = "kubectl_complete-rowlock"
)

// Exe returns the file name of a program.
func Exe(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// Build is added to the version of the server.
func Build() string { return "rowlock." + Version }

// DefaultDataDir is the default of --data-dir.
const DefaultDataDir = "./rowlock-data"
