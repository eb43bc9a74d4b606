package heap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// leaveProgram takes the pages of the program that nobody has needed since the start out
// of the resident set: what a start runs once, tables of what is never asked for. They
// are only unmapped: they stay in the kernel's cache of the file, and the next use maps
// them again, some at a time. Only what cannot be written is touched, and so cannot differ
// from the file.
func leaveProgram() error {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer maps.Close()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	list, err := programMaps(maps, self)
	for _, m := range list {
		// The addresses are the kernel's own word for what is mapped, of memory that is not Go's.
		if _, _, no := syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED); no != 0 {
			err = errors.Join(err, fmt.Errorf("madvise: %w", no))
		}
	}
	return err
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// programMaps finds what of a file is mapped and can not be written.
func programMaps(maps io.Reader, file string) (list []mapping, err error) {
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var m mapping
		var rights, offset, device string
		var inode int64
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s %s %s %d", &m.from, &m.to, &rights, &offset, &device, &inode); n != 6 || inode == 0 {
			continue
		}
		if (rights == "r--p" || rights == "r-xp") && strings.HasSuffix(lines.Text(), " "+file) {
			list = append(list, m)
		}
	}
	return list, lines.Err()
}
