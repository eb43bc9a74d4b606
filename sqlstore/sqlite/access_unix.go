//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Modes of access(2).
const (
	mayRead   = 4
	mayWrite  = 2
	maySearch = 1
)

// denied describes the missing permissions of this process on a database, on SQLite's files for it and on
// their folder, and their owners; "" if none is missing.
func denied(path string) string {
	var lacks []string
	folder := filepath.Dir(path)
	if err := syscall.Access(folder, mayRead|mayWrite|maySearch); err != nil && !errors.Is(err, syscall.ENOENT) {
		lacks = append(lacks, lacking(folder, "the folder "+folder, "make files in it", err))
	}
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		if err := syscall.Access(path+suffix, mayRead|mayWrite); err != nil && !errors.Is(err, syscall.ENOENT) {
			lacks = append(lacks, lacking(path+suffix, path+suffix, "", err))
		}
	}
	return strings.Join(lacks, "; ")
}

// lacking describes one file or folder that this process may not use as it has to.
func lacking(path, named, to string, cause error) string {
	if to == "" {
		var rights []string
		for _, one := range []struct {
			mode uint32
			name string
		}{{mayRead, "read"}, {mayWrite, "write"}} {
			if syscall.Access(path, one.mode) != nil {
				rights = append(rights, one.name)
			}
		}
		to = strings.Join(rights, " and ") + " it"
	}
	text := fmt.Sprintf("user %s may not %s", userName(uint32(os.Getuid())), to)
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Sprintf("%s: %s: %v", named, text, err)
	}
	owner := "its owner is not known"
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = fmt.Sprintf("is owned by user %s and group %s", userName(stat.Uid), groupName(stat.Gid))
	}
	why := ""
	if !errors.Is(cause, fs.ErrPermission) {
		why = fmt.Sprintf(" (%v)", cause) // a file system that is mounted read-only
	}
	return fmt.Sprintf("%s %s with mode %v: %s%s", named, owner, info.Mode(), text, why)
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username + " (" + id + ")"
	}
	return id
}

func groupName(gid uint32) string {
	id := strconv.FormatUint(uint64(gid), 10)
	if g, err := user.LookupGroupId(id); err == nil {
		return g.Name + " (" + id + ")"
	}
	return id
}
