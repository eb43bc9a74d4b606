package sqlite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Exclusive implements sqlstore.Driver.
func (d *Driver) Exclusive() uint64 { return d.lock.exclusive() }

// Now implements sqlstore.Driver: all processes are on one machine, whose clock is theirs.
func (d *Driver) Now() time.Time { return time.Now() }

// Lead implements sqlstore.Driver with a lock of the kernel: it is not lost
// while this process lives.
func (d *Driver) Lead(ctx context.Context, name string) (<-chan struct{}, func(), bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, false, err
	}
	select {
	case <-d.closing:
		return nil, nil, false, sqlstore.ErrClosed
	default:
	}
	ok, err := d.lock.try("lead " + name)
	if err != nil || !ok {
		if err != nil {
			err = fmt.Errorf("leading %q: %w", name, err)
		}
		return nil, nil, false, err
	}
	var once sync.Once
	release := func() { once.Do(func() { d.lock.release("lead " + name) }) }
	return d.closing, release, true, nil
}
