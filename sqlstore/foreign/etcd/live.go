package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// ErrCompacted is wrapped where etcd compacted its history while it was read.
var ErrCompacted = errors.New("etcd compacted the revision that is read; an API server lets it do so after 5 to 10 minutes (its --etcd-compaction-interval): try again, or save a snapshot and read that")

const (
	// callTime is the timeout of one answer; calls fail over to other endpoints within it.
	callTime = 30 * time.Second
	// pageBytesAim is the size that answers should have: pages are made longer and shorter.
	pageBytesAim = 4 << 20
	maxPage      = 2000
)

// Live is a running etcd, read at the revision that it had when it was opened.
type Live struct {
	conn     *grpc.ClientConn
	prefix   string
	describe string
	revision int64
	count    int64 // keys at that revision, according to etcd
}

var _ foreign.Source = (*Live)(nil)

// Open connects to an etcd and asks for its revision. Errors name the flag that is
// wrong, or the endpoints.
func Open(ctx context.Context, c Config) (*Live, error) {
	conn, err := dial(c)
	if err != nil {
		return nil, err
	}
	l := &Live{conn: conn, prefix: c.Prefix, describe: "etcd at " + strings.Join(c.Endpoints, ", ")}
	l.prefix = cmp.Or(l.prefix, "/registry/")
	head, err := l.get(ctx, &rangeRequest{key: []byte(l.prefix), end: after(l.prefix), countOnly: true})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", l.describe, err), l.Close())
	}
	l.revision, l.count = head.revision, head.count
	return l, nil
}

// get asks for a range.
func (l *Live) get(ctx context.Context, req *rangeRequest) (*rangeAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer := &rangeAnswer{}
	err := l.conn.Invoke(ctx, rangeMethod, req, answer, grpc.WaitForReady(true))
	switch {
	case err == nil:
		if !answer.headed {
			return nil, errors.New("its answer has no revision")
		}
		return answer, nil
	case hasMessage(err, messageCompacted):
		return nil, ErrCompacted
	}
	return nil, err
}

// after returns the first key behind all that begin with a prefix.
func after(prefix string) []byte {
	end := []byte(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return []byte{0} // all keys
}

// Describe implements foreign.Source.
func (l *Live) Describe() string { return l.describe }

// Revision implements foreign.Source.
func (l *Live) Revision() int64 { return l.revision }

// Close implements foreign.Source.
func (l *Live) Close() error { return l.conn.Close() }

// Entries implements foreign.Source. It ends with ErrCompacted if it takes longer than etcd keeps the
// revision.
func (l *Live) Entries(ctx context.Context) iter.Seq2[foreign.Entry, error] {
	return func(yield func(foreign.Entry, error) bool) {
		if err := l.entries(ctx, func(e foreign.Entry) bool { return yield(e, nil) }); err != nil {
			yield(foreign.Entry{}, fmt.Errorf("reading %s: %w", l.describe, err))
		}
	}
}

// Count implements foreign.Counter.
func (l *Live) Count(context.Context) (int64, error) { return l.count, nil }

func (l *Live) entries(ctx context.Context, yield func(foreign.Entry) bool) error {
	leases := make(map[int64]time.Time)
	last, n := "", int64(0)
	req := &rangeRequest{key: []byte(l.prefix), end: after(l.prefix), revision: l.revision, limit: 100}
	for {
		page, tooLong, err := l.page(ctx, req)
		if err != nil {
			return err
		}
		size := 0
		for _, kv := range page.kvs {
			key := string(kv.key)
			if key <= last || !strings.HasPrefix(key, l.prefix) {
				return fmt.Errorf("it sends key %q, which was not asked for", foreign.Shown(key))
			}
			if n++; n > l.count {
				return fmt.Errorf("it sends more than the %d keys that it says there are", l.count)
			}
			last, size = key, size+len(kv.key)+len(kv.value)
			e := foreign.Entry{Key: key, Value: kv.value, CreateRevision: kv.created, ModRevision: kv.modified}
			if e.Unread = foreign.Check(key, int64(len(kv.value))); e.Unread == nil && tooLong {
				e.Unread = &foreign.KeyError{Key: key, Why: fmt.Sprintf("its value does not fit into an answer of %d bytes, and at most %d are read", maxAnswer, foreign.MaxValue)}
			}
			if e.Unread != nil {
				e.Value = nil
			}
			if kv.leased != 0 {
				if e.ExpiresAt, err = l.end(ctx, leases, kv.leased); err != nil {
					return err
				}
			}
			if !yield(e) {
				return nil
			}
		}
		if !page.more || len(page.kvs) == 0 {
			if n != l.count {
				return fmt.Errorf("it sends %d keys, and said that there are %d", n, l.count)
			}
			return nil
		}
		req.key = append([]byte(last), 0)
		if size < pageBytesAim/2 {
			req.limit = min(req.limit*2, maxPage)
		} else if size > pageBytesAim*2 {
			req.limit = max(req.limit/2, 1)
		}
	}
}

// page requests a page, and a shorter one if that is longer than maxAnswer. tooLong means that one key alone
// is: then the page has that key without its value.
func (l *Live) page(ctx context.Context, req *rangeRequest) (page *rangeAnswer, tooLong bool, err error) {
	for {
		page, err = l.get(ctx, req)
		if status.Code(err) != codes.ResourceExhausted || hasMessage(err, messageTooManyRequests) {
			return page, false, err
		}
		if req.limit == 1 {
			break
		}
		req.limit = max(req.limit/4, 1)
	}
	name := &rangeRequest{key: req.key, end: req.end, revision: req.revision, limit: 1, keysOnly: true}
	if page, err = l.get(ctx, name); err != nil {
		return nil, false, fmt.Errorf("the first key from %q on is longer than an answer of %d bytes: %w", foreign.Shown(string(req.key)), maxAnswer, err)
	}
	return page, true, nil
}

// end returns when a lease expires, requested once for each. Keys of one that has expired since the
// revision expire now.
func (l *Live) end(ctx context.Context, known map[int64]time.Time, id int64) (time.Time, error) {
	if at, ok := known[id]; ok {
		return at, nil
	}
	if len(known) >= maxLeases {
		return time.Time{}, fmt.Errorf("it has more than %d leases", maxLeases)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer := &leaseAnswer{}
	err := l.conn.Invoke(ctx, leaseMethod, &leaseRequest{id: id}, answer, grpc.WaitForReady(true))
	if err != nil && !hasMessage(err, messageNoLease) {
		return time.Time{}, err
	}
	at := time.Now()
	if seconds := answer.seconds; err == nil && seconds > 0 && seconds < 1<<31 {
		at = at.Add(time.Duration(seconds) * time.Second)
	}
	known[id] = at
	return at, nil
}
