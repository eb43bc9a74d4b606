package etcd

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"os"
)

// pageUnit divides the size of each database of the library; a snapshot with its hash is
// longer by that, which is how etcd's own tools tell them apart.
const pageUnit = 512

// checkHash compares the hash at the end of a snapshot, and returns the size of the
// database before it. A file without a hash passes with unhashed.
func checkHash(ctx context.Context, f *os.File, unhashed bool) (size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size = info.Size()
	switch {
	case size%pageUnit == 0 && size > 0:
		if !unhashed {
			return 0, fmt.Errorf("%w: it was copied, not saved by etcdctl snapshot save (or cut off), and nothing shows whether it is complete", ErrNoHash)
		}
		return size, nil
	case size%pageUnit != sha256.Size || size < pageUnit:
		return 0, damaged("its size of %d bytes is that of no snapshot: it is cut off, or not of etcd", size)
	}
	size -= sha256.Size
	sum, buf := sha256.New(), make([]byte, 1<<20)
	for rest := io.NewSectionReader(f, 0, size); ; {
		n, err := rest.Read(buf)
		sum.Write(buf[:n])
		if err == io.EOF {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
	}
	want := make([]byte, sha256.Size)
	if _, err := f.ReadAt(want, size); err != nil {
		return 0, err
	}
	if subtle.ConstantTimeCompare(want, sum.Sum(nil)) == 0 {
		return 0, damaged("its content does not have the SHA-256 that stands at its end")
	}
	return size, nil
}
