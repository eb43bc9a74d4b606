package envtest

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/sqlstore/archive"
)

func envtestArchiveCommand() *cobra.Command {
	var overwrite cli.Overwrite
	cmd := &cobra.Command{
		Use:   "archive [FILE]",
		Short: "Write the archive of kube-apiserver, etcd and kubectl that setup-envtest uses",
		Long: `Write the archive of kube-apiserver, etcd and, if one is in PATH, kubectl that
setup-envtest uses to FILE or to the standard output:

  rowlock envtest archive | setup-envtest sideload ` + release.Default.Patch(),
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			out := cmd.OutOrStdout()
			if len(args) == 0 || args[0] == "-" {
				if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
					return errors.New("not writing the archive to a terminal: name a FILE")
				}
				return archiveAssets(out)
			}
			if err := overwrite.AllowsReplacing(args[0]); err != nil {
				return err
			}
			return archive.WriteFile(args[0], archiveAssets)
		},
	}
	overwrite.AddTo(cmd.Flags())
	return cmd
}

// etcdScript is etcd in the archive of a binary that has no small etcd program: a second copy of the binary would
// double the archive, and programs that unpack it ignore links.
const etcdScript = `#!/bin/sh
exec "$(dirname "$0")/kube-apiserver" etcd "$@"
`

// archiveAssets writes a compressed archive.
func archiveAssets(to io.Writer) error {
	self, err := executable()
	if err != nil {
		return err
	}
	small, err := etcdProgram(self)
	if err != nil {
		return err
	}
	if small == nil && runtime.GOOS != "windows" {
		small = []byte(etcdScript)
	}
	packed, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(packed)
	if err := addFile(t, program.APIServer, self); err != nil {
		return err
	}
	if small == nil {
		err = addFile(t, program.Etcd, self)
	} else {
		err = addProgram(t, program.Etcd, int64(len(small)), bytes.NewReader(small))
	}
	if err != nil {
		return err
	}
	if kubectl := kubectlPath(); kubectl != "" {
		if err := addFile(t, "kubectl", kubectl); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), packed.Close())
}

func addFile(t *tar.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return addProgram(t, name, info.Size(), f)
}

// addProgram adds a program under the path that such archives have.
func addProgram(t *tar.Writer, name string, size int64, content io.Reader) error {
	err := t.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: "controller-tools/envtest/" + program.Exe(name), Mode: 0o755, Size: size, ModTime: time.Unix(0, 0),
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(t, content)
	return err
}
