package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"
)

// Overwrite is the flag of commands that write a file: without it, a file that exists is
// kept and the command refused.
type Overwrite bool

func (o *Overwrite) AddTo(f *pflag.FlagSet) {
	f.BoolVar((*bool)(o), "overwrite", false, "replace a file that exists")
}

// Allows says whether path may be written to. Devices and pipes lose nothing by it.
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

// AllowsReplacing says whether a new file may take the place of path, which a device or a pipe would
// not survive.
func (o Overwrite) AllowsReplacing(path string) error {
	if err := o.Allows(path); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: name a file, and use - for standard output where the command has that", path)
	}
	return nil
}
