package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"
)

// Overwrite is the flag --overwrite of commands that write a file. Without it they refuse to replace an existing
// file.
type Overwrite bool

func (o *Overwrite) AddTo(f *pflag.FlagSet) {
	f.BoolVar((*bool)(o), "overwrite", false, "replace a file that exists")
}

// Allows returns an error if path may not be written to. Writing to a device or a pipe is always allowed.
func (o Overwrite) Allows(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory: name a file", path)
	case info.Mode().IsRegular() && !bool(o):
		return fmt.Errorf("%s exists already and is not overwritten: choose another name, or add --overwrite", path)
	}
	return nil
}

// AllowsReplacing returns an error if path may not be replaced by a new file. Devices and pipes may not.
func (o Overwrite) AllowsReplacing(path string) error {
	if err := o.Allows(path); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: name a file, and use - for standard output where the command has that", path)
	}
	return nil
}
