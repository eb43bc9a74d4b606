//go:build linux

package heap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// TestProgramMaps: what can be written, and what is no part of the program, stays.
func TestProgramMaps(t *testing.T) {
	const text = `00400000-01ed1000 r-xp 00000000 fe:00 3932218                            /usr/local/bin/my rowlock
01ed1000-04a2c000 r--p 01ad1000 fe:00 3932218                            /usr/local/bin/my rowlock
04a2c000-04d03000 rw-p 0462c000 fe:00 3932218                            /usr/local/bin/my rowlock
04d03000-04dd5000 rw-p 00000000 00:00 0
c000000000-c001400000 rw-p 00000000 00:00 0
7f0000000000-7f0000010000 r--p 00000000 fe:00 77                        /usr/share/zoneinfo/UTC
7f0000020000-7f0000030000 r--s 00000000 fe:00 3932218                    /usr/local/bin/my rowlock
7ffd8a5fe000-7ffd8a600000 r-xp 00000000 00:00 0                          [vdso]
nonsense
`
	got, err := programMaps(strings.NewReader(text), "/usr/local/bin/my rowlock")
	if err != nil || len(got) != 2 || got[0] != (mapping{0x400000, 0x1ed1000}) || got[1] != (mapping{0x1ed1000, 0x4a2c000}) {
		t.Errorf("%x %v", got, err)
	}
}

// TestWhenToLeave: at the first look, and while nothing happens again and again, at intervals.
func TestWhenToLeave(t *testing.T) {
	at := []int{}
	l := leaving{}
	looks := []int{0, 0, 1, 2, tidyAfter, tidyAfter + 1, 0}
	for quiet := 1; quiet <= tidyAfter+2*leaveEvery; quiet++ {
		looks = append(looks, quiet)
	}
	for i, quiet := range looks {
		l.do = func() error { at = append(at, i); return nil }
		l.look(quiet)
	}
	calm := 6 + tidyAfter // the look at which nothing has happened for a while the second time
	if want := []int{0, 4, calm, calm + leaveEvery, calm + 2*leaveEvery}; !slices.Equal(at, want) {
		t.Errorf("at the looks %v, want %v", at, want)
	}
}

// TestLeaveProgram: the program goes on, and less of its file is resident.
func TestLeaveProgram(t *testing.T) {
	resident := func() string {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "RssFile:")
		line, _, _ := strings.Cut(rest, "\n")
		return strings.TrimSpace(line)
	}
	before := resident()
	for range 3 {
		if err := leaveProgram(); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(before, " kB") || strings.ToUpper("still running") != "STILL RUNNING" {
			t.Fatal(before)
		}
	}
	t.Logf("resident of files: %s before, %s after", before, resident())
}

// TestLeaveChanged: pages that differ from their file stay as they are.
func TestLeaveChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	size := 2 * os.Getpagesize()
	if err := os.WriteFile(path, bytes.Repeat([]byte("f"), size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	memory, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(memory) }()
	from := uintptr(unsafe.Pointer(&memory[0]))
	all := mapping{from, from + uintptr(size)}
	resident := func() bool {
		pages, err := os.Open("/proc/self/pagemap")
		if err != nil {
			t.Fatal(err)
		}
		defer pages.Close()
		word := make([]byte, 8)
		if _, err := pages.ReadAt(word, int64(from)/int64(os.Getpagesize())*8); err != nil {
			t.Fatal(err)
		}
		return binary.NativeEndian.Uint64(word)&pagePresent != 0
	}
	if memory[0] != 'f' || !resident() {
		t.Fatal("the page is not there")
	}
	if err := leave([]mapping{all}); err != nil || resident() {
		t.Errorf("a page that is as its file is stays: %v", err)
	}
	memory[size-1] = 'x'
	if err := errors.Join(syscall.Mprotect(memory, syscall.PROT_READ), leave([]mapping{all})); err != nil {
		t.Fatal(err)
	}
	if memory[size-1] != 'x' || memory[0] != 'f' {
		t.Errorf("what was written is lost: %q", memory[size-1])
	}
}
