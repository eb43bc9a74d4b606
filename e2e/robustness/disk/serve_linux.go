package disk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

const pageSize = 4096

// Serve mounts a disk whose files are in a folder, and obeys the commands of the process that started it, one a line, until
// there are no more. It is the program's own child: a process that reads a database on a mount that it serves itself can
// wait for itself.
func Serve(backing, mount string, in io.Reader, out io.Writer) error {
	d := &served{backing: backing, files: map[string]*file{}}
	root := &fs.LoopbackRoot{Path: backing, NewNode: func(r *fs.LoopbackRoot, _ *fs.Inode, _ string, _ *syscall.Stat_t) fs.InodeEmbedder {
		return &node{LoopbackNode: fs.LoopbackNode{RootData: r}, disk: d}
	}}
	top := &node{LoopbackNode: fs.LoopbackNode{RootData: root}, disk: d}
	root.RootNode = top
	server, err := fs.Mount(mount, top, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "robustness", Name: "robustness"}})
	if err != nil {
		return fmt.Errorf("mounting a disk: %w", err)
	}
	fmt.Fprintln(out, "ready")
	for lines := bufio.NewScanner(in); lines.Scan(); {
		fmt.Fprintln(out, d.obey(strings.Fields(lines.Text())))
	}
	for range 50 { // as long as a process has a file open
		if err = server.Unmount(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// served is a disk that keeps the content of each file as of the last sync.
type served struct {
	backing string
	mu      sync.Mutex
	files   map[string]*file
	slow    time.Duration // longest time of a sync
	fail    int           // syncs that are still to fail
	full    bool
}

// file holds the content of a file that remains if the pages since its last sync are lost.
type file struct {
	mu     sync.Mutex
	f      *os.File
	pages  map[int64][]byte // pages that were written since, as they were before; nil: beyond the end
	doomed map[int64]bool   // pages whose sync failed: a later sync does not bring them to the disk
	size   int64            // before the first change of the size since; -1: it did not change
}

func (d *served) obey(words []string) string {
	if len(words) != 2 {
		return "error: want a command and a number"
	}
	n, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return "error: " + err.Error()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch words[0] {
	case "slow":
		d.slow = time.Duration(n)
	case "fail":
		left := d.fail
		d.fail = int(n)
		return fmt.Sprintf("ok %d", left)
	case "full":
		d.full = n != 0
	case "lose":
		lost, err := d.lose(rand.New(rand.NewPCG(uint64(n), 3)))
		if err != nil {
			return "error: " + err.Error()
		}
		return fmt.Sprintf("ok %d", lost)
	default:
		return "error: no such command"
	}
	return "ok 0"
}

// lose takes back what no sync brought to the disk: all of it, or of each page by chance, as a disk may have written some.
func (d *served) lose(r *rand.Rand) (lost int, err error) {
	all := r.IntN(3) == 0
	for _, f := range d.files {
		n, err := f.lose(r, all)
		if err != nil {
			return lost, err
		}
		lost += n
	}
	return lost, nil
}

func (f *file) lose(r *rand.Rand, all bool) (lost int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for page, data := range f.pages {
		if !all && r.IntN(2) == 0 {
			continue
		}
		lost++
		if data == nil {
			data = make([]byte, pageSize) // allocated, and never written
		}
		if _, err := f.f.WriteAt(data, page*pageSize); err != nil {
			return lost, err
		}
	}
	if f.size >= 0 {
		if err := f.f.Truncate(f.size); err != nil {
			return lost, err
		}
	}
	f.pages, f.doomed, f.size = map[int64][]byte{}, map[int64]bool{}, -1
	return lost, nil
}

// before keeps the content of a range of the file before it changes. f.mu is held.
func (f *file) before(off, n int64) error {
	info, err := f.f.Stat()
	if err != nil {
		return err
	}
	if end := off + n; f.size < 0 && end > info.Size() {
		f.size = info.Size()
	}
	for page := off / pageSize; page*pageSize < off+n; page++ {
		delete(f.doomed, page)
		if _, known := f.pages[page]; known {
			continue
		}
		data := make([]byte, pageSize)
		switch n, err := f.f.ReadAt(data, page*pageSize); {
		case n == 0 && errors.Is(err, io.EOF):
			f.pages[page] = nil
		case err == nil || errors.Is(err, io.EOF):
			f.pages[page] = data[:n]
		default:
			return err
		}
	}
	return nil
}

// sync brings pages to the disk, or fails and leaves them lost.
func (f *file) sync(fail bool) {
	for page := range f.pages {
		if fail {
			f.doomed[page] = true
		} else if !f.doomed[page] {
			delete(f.pages, page)
		}
	}
	if !fail {
		f.size = -1
	}
}

// node is a file or a folder. Only the database and its write-ahead log lose pages.
type node struct {
	fs.LoopbackNode
	disk *served
}

func (n *node) place() string {
	return filepath.Join(n.disk.backing, n.Path(n.Root()))
}

func (d *served) file(path string) (*file, error) {
	if !strings.HasSuffix(path, ".db") && !strings.HasSuffix(path, ".db-wal") {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.files[path]; f != nil {
		return f, nil
	}
	backing, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	f := &file{f: backing, pages: map[int64][]byte{}, doomed: map[int64]bool{}, size: -1}
	d.files[path] = f
	return f, nil
}

func (d *served) forget(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.files[path]; f != nil {
		f.f.Close()
		delete(d.files, path)
	}
}

func (n *node) handle(path string, fh fs.FileHandle, flags uint32, errno syscall.Errno) (fs.FileHandle, uint32, syscall.Errno) {
	plain, ok := fh.(*fs.LoopbackFile)
	if errno != 0 || !ok {
		return fh, flags, errno
	}
	f, err := n.disk.file(path)
	if err != nil {
		return nil, 0, fs.ToErrno(err)
	}
	return &handle{LoopbackFile: plain, file: f, disk: n.disk}, flags, 0
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	fh, out, errno := n.LoopbackNode.Open(ctx, flags)
	return n.handle(n.place(), fh, out, errno)
}

func (n *node) Create(ctx context.Context, name string, flags uint32, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	path := filepath.Join(n.place(), name)
	n.disk.forget(path)
	inode, fh, fuseFlags, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	fh, fuseFlags, errno = n.handle(path, fh, fuseFlags, errno)
	return inode, fh, fuseFlags, errno
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	n.disk.forget(filepath.Join(n.place(), name))
	return n.LoopbackNode.Unlink(ctx, name)
}

// Setattr keeps the content of a file beyond its new size.
func (n *node) Setattr(ctx context.Context, fh fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		f, err := n.disk.file(n.place())
		if err != nil {
			return fs.ToErrno(err)
		}
		if f != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			info, err := f.f.Stat()
			if err != nil {
				return fs.ToErrno(err)
			}
			if f.size < 0 {
				f.size = info.Size()
			}
			if int64(size) < info.Size() {
				if err := f.before(int64(size), info.Size()-int64(size)); err != nil {
					return fs.ToErrno(err)
				}
			}
		}
	}
	if h, ok := fh.(*handle); ok {
		fh = h.LoopbackFile
	}
	return n.LoopbackNode.Setattr(ctx, fh, in, out)
}

func (n *node) Getattr(ctx context.Context, fh fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if h, ok := fh.(*handle); ok {
		fh = h.LoopbackFile
	}
	return n.LoopbackNode.Getattr(ctx, fh, out)
}

// handle is an open file.
type handle struct {
	*fs.LoopbackFile
	file *file // nil: nothing of it is lost
	disk *served
}

// PassthroughFd would let the kernel write past this.
func (h *handle) PassthroughFd() (int, bool) { return 0, false }

func (h *handle) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	if h.file == nil {
		return h.LoopbackFile.Write(ctx, data, off)
	}
	h.disk.mu.Lock()
	full := h.disk.full
	h.disk.mu.Unlock()
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	if full {
		if info, err := h.file.f.Stat(); err == nil && off+int64(len(data)) > info.Size() {
			return 0, syscall.ENOSPC
		}
	}
	if err := h.file.before(off, int64(len(data))); err != nil {
		return 0, fs.ToErrno(err)
	}
	return h.LoopbackFile.Write(ctx, data, off)
}

func (h *handle) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	if h.file == nil {
		return h.LoopbackFile.Fsync(ctx, flags)
	}
	h.disk.mu.Lock()
	slow, fail := h.disk.slow, h.disk.fail > 0
	if fail {
		h.disk.fail--
	}
	h.disk.mu.Unlock()
	if slow > 0 {
		time.Sleep(rand.N(slow))
	}
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	if h.file.sync(fail); fail {
		return syscall.EIO
	}
	return 0
}
