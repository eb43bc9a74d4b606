package heap

import (
	"bufio"
	"encoding/binary"
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
// them again, some at a time. Only what cannot be written, and does not differ from the
// file, is touched: a program that is loaded wherever there is room (PIE), or linked when it starts, has
// tables whose addresses were filled in before they were made read-only.
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
	if err != nil {
		return err
	}
	return leave(list)
}

// leave takes pages out of the resident set, of mappings that are as their file is.
func leave(list []mapping) error {
	pages, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return err
	}
	defer pages.Close()
	for _, m := range list {
		if same, bad := m.asFile(pages); bad != nil {
			err = errors.Join(err, bad)
			continue
		} else if !same {
			continue
		}
		// The addresses are the kernel's own word for what is mapped, of memory that is not Go's.
		if _, _, no := syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED); no != 0 {
			err = errors.Join(err, fmt.Errorf("madvise: %w", no))
		}
	}
	return err
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// What the kernel says of a page in /proc/self/pagemap.
const (
	pageOfFile  = 1 << 61
	pageSwapped = 1 << 62
	pagePresent = 1 << 63
)

// asFile says whether no page of a mapping was ever written: one that was is the
// process's own, in memory or in swap.
func (m mapping) asFile(pages io.ReaderAt) (bool, error) {
	size := uintptr(os.Getpagesize())
	words := make([]byte, 8*((m.to-m.from)/size))
	if _, err := pages.ReadAt(words, int64(m.from/size)*8); err != nil {
		return false, fmt.Errorf("pagemap: %w", err)
	}
	for ; len(words) > 0; words = words[8:] {
		page := binary.NativeEndian.Uint64(words)
		if page&(pageSwapped|pagePresent) != 0 && page&pageOfFile == 0 {
			return false, nil
		}
	}
	return true, nil
}

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
