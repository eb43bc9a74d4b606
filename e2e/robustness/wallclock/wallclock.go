// Package wallclock sets the wall clock of one process, and of no other.
//
// A program of Go on Linux reads its clocks by a function of the vDSO, the piece of the kernel in the memory of each process, and
// keeps the address of that function in a variable. Open writes another function into unused bytes of the vDSO of the process,
// as debuggers write breakpoints (the kernel gives the process a copy of that page), and its address into the variable. The
// function adds seconds to the wall clock, and leaves all other clocks alone. So the build under test is the one that is
// released, and its clock is set while it runs, as by a time daemon: elapsed time goes on as before.
package wallclock

import "errors"

// ErrUnknown: how to set the clock of a process is not known on this system.
var ErrUnknown = errors.New("the clock of a process can be set on linux/amd64 only")
