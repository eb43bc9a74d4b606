package sqlite

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// lockFile lets the processes that use one database find each other. It is in the database's
// folder. Each process holds a shared lock on its first byte, and names are locked as bytes further
// on: locks of open file descriptions, which the kernel drops when a process dies.
//
// Its first word is shared memory that counts openings. A process raises it
// before its first write. So a process that was alone, and finds the word
// unchanged, is alone still: a read of memory instead of a system call.
type lockFile struct {
	file    *os.File
	opened  os.FileInfo // of file
	memory  []byte
	arrived *atomic.Uint64
	alone   atomic.Uint64 // count at which no other process was there; 0: not alone

	mu    sync.Mutex
	names map[string]bool // held by this process
}

const (
	ofdGet  = 36 // F_OFD_GETLK
	ofdSet  = 37 // F_OFD_SETLK
	present = 0  // offset of the byte that every process holds
	named   = 1 << 20
)

func openLock(ctx context.Context, path string) (*lockFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	l := &lockFile{file: f, names: make(map[string]bool)}
	if err := l.join(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), l.close())
	}
	l.refresh()
	return l, ctx.Err()
}

func (l *lockFile) join() error {
	if err := l.set(present, syscall.F_RDLCK); err != nil {
		return err
	}
	var err error
	if l.opened, err = l.file.Stat(); err != nil {
		return err
	}
	// The byte behind the word has the disk hold the word's block. Otherwise storing to the memory would end the process where the
	// disk is full.
	if _, err := l.file.WriteAt([]byte{0}, 8); err != nil {
		return err
	}
	memory, err := syscall.Mmap(int(l.file.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	l.memory = memory
	runtime.AddCleanup(l, func(m []byte) { syscall.Munmap(m) }, memory) // not in close: exclusive may be reading it
	l.arrived = (*atomic.Uint64)(unsafe.Pointer(&memory[0]))
	l.arrived.Add(1)
	return nil
}

func (l *lockFile) set(offset int64, kind int16) error {
	lk := syscall.Flock_t{Type: kind, Whence: 0, Start: offset, Len: 1}
	return syscall.FcntlFlock(l.file.Fd(), ofdSet, &lk)
}

// refresh checks whether this process is alone. The order matters: a process that
// arrives after the count was read changes it.
func (l *lockFile) refresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.memory == nil {
		return
	}
	count := l.arrived.Load()
	if l.inPlace() != nil {
		l.alone.Store(0)
		return
	}
	if l.alone.Load() == count {
		return
	}
	lk := syscall.Flock_t{Type: syscall.F_WRLCK, Start: present, Len: 1}
	if err := syscall.FcntlFlock(l.file.Fd(), ofdGet, &lk); err != nil || lk.Type != syscall.F_UNLCK {
		count = 0
	}
	l.alone.Store(count)
}

// inPlace returns an error if other processes no longer find this file, because it was deleted, renamed or replaced.
func (l *lockFile) inPlace() error { return same(l.file.Name(), l.opened) }

func (l *lockFile) exclusive() uint64 {
	if alone := l.alone.Load(); alone != 0 && alone == l.arrived.Load() {
		return alone
	}
	return 0
}

func offsetOf(name string) int64 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return named + int64(h.Sum32())
}

// try takes a name without waiting.
func (l *lockFile) try(name string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.memory == nil || l.names[name] {
		return false, nil
	}
	switch err := l.set(offsetOf(name), syscall.F_WRLCK); {
	case err == nil:
		l.names[name] = true
		return true, nil
	case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES):
		return false, nil
	default:
		return false, fmt.Errorf("locking %q: %w", name, err)
	}
}

func (l *lockFile) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names[name] && l.memory != nil {
		delete(l.names, name)
		l.set(offsetOf(name), syscall.F_UNLCK) // cannot fail for a lock that is held
	}
}

func (l *lockFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alone.Store(0)
	l.memory = nil
	// The mapping keeps the description alive, and its locks with it.
	all := syscall.Flock_t{Type: syscall.F_UNLCK}
	return errors.Join(syscall.FcntlFlock(l.file.Fd(), ofdSet, &all), l.file.Close())
}
