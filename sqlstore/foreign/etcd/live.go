package etcd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// ErrCompacted is wrapped where etcd compacted its history while it was read.
var ErrCompacted = errors.New("etcd compacted the revision that is read; an API server lets it do so after 5 to 10 minutes (its --etcd-compaction-interval): try again, or save a snapshot and read that")

const (
	// callTime is how long one answer may take; calls fail over to other endpoints meanwhile.
	callTime = 30 * time.Second
	// pageBytesAim is how long an answer should be: pages are made longer and shorter.
	pageBytesAim = 4 << 20
	maxPage      = 2000
)

// Live is a running etcd, read at the revision that it had when it was opened.
type Live struct {
	conn     *grpc.ClientConn
	kv       etcdserverpb.KVClient
	lease    etcdserverpb.LeaseClient
	prefix   string
	describe string
	revision int64
	count    int64 // keys at that revision, as it says
}

var _ foreign.Source = (*Live)(nil)

// Open connects to an etcd and asks for its revision. Errors name the flag that is
// wrong, or the endpoints.
func Open(ctx context.Context, c Config) (*Live, error) {
	conn, err := dial(c)
	if err != nil {
		return nil, err
	}
	l := &Live{conn: conn, kv: etcdserverpb.NewKVClient(conn), lease: etcdserverpb.NewLeaseClient(conn), prefix: c.Prefix, describe: "etcd at " + strings.Join(c.Endpoints, ", ")}
	if l.prefix == "" {
		l.prefix = "/registry/"
	}
	head, err := l.get(ctx, &etcdserverpb.RangeRequest{Key: []byte(l.prefix), RangeEnd: after(l.prefix), CountOnly: true})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", l.describe, err), l.Close())
	}
	l.revision, l.count = head.Header.GetRevision(), head.Count
	return l, nil
}

// get asks for a range.
func (l *Live) get(ctx context.Context, req *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer, err := l.kv.Range(ctx, req, grpc.WaitForReady(true))
	switch {
	case err == nil:
		if answer.Header == nil {
			return nil, errors.New("its answer has no revision")
		}
		return answer, nil
	case errors.Is(rpctypes.Error(err), rpctypes.ErrCompacted):
		return nil, ErrCompacted
	}
	return nil, err
}

// after is the first key behind all that begin with a prefix.
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

// Entries implements foreign.Source. It ends with ErrCompacted where that takes longer
// than etcd keeps the revision.
func (l *Live) Entries(ctx context.Context) iter.Seq2[foreign.Entry, error] {
	return func(yield func(foreign.Entry, error) bool) {
		if err := l.entries(ctx, func(e foreign.Entry) bool { return yield(e, nil) }); err != nil {
			yield(foreign.Entry{}, fmt.Errorf("reading %s: %w", l.describe, err))
		}
	}
}

func (l *Live) entries(ctx context.Context, yield func(foreign.Entry) bool) error {
	leases := make(map[int64]time.Time)
	last, n := "", int64(0)
	req := &etcdserverpb.RangeRequest{Key: []byte(l.prefix), RangeEnd: after(l.prefix), Revision: l.revision, Limit: 100}
	for {
		page, tooLong, err := l.page(ctx, req)
		if err != nil {
			return err
		}
		size := 0
		for _, kv := range page.Kvs {
			key := string(kv.Key)
			if key <= last || !strings.HasPrefix(key, l.prefix) {
				return fmt.Errorf("it sends key %q, which was not asked for", foreign.Shown(key))
			}
			if n++; n > l.count {
				return fmt.Errorf("it sends more than the %d keys that it says there are", l.count)
			}
			last, size = key, size+len(kv.Key)+len(kv.Value)
			e := foreign.Entry{Key: key, Value: kv.Value, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision}
			if e.Unread = foreign.Check(key, int64(len(kv.Value))); e.Unread == nil && tooLong {
				e.Unread = &foreign.KeyError{Key: key, Why: fmt.Sprintf("its value does not fit into an answer of %d bytes, and at most %d are read", maxAnswer, foreign.MaxValue)}
			}
			if e.Unread != nil {
				e.Value = nil
			}
			if kv.Lease != 0 {
				if e.ExpiresAt, err = l.end(ctx, leases, kv.Lease); err != nil {
					return err
				}
			}
			if !yield(e) {
				return nil
			}
		}
		if !page.More || len(page.Kvs) == 0 {
			if n != l.count {
				return fmt.Errorf("it sends %d keys, and said that there are %d", n, l.count)
			}
			return nil
		}
		req.Key = append([]byte(last), 0)
		if size < pageBytesAim/2 {
			req.Limit = min(req.Limit*2, maxPage)
		} else if size > pageBytesAim*2 {
			req.Limit = max(req.Limit/2, 1)
		}
	}
}

// page asks for a page, and for a shorter one where that is longer than maxAnswer. tooLong
// says that one key alone is: then the page has that without its value.
func (l *Live) page(ctx context.Context, req *etcdserverpb.RangeRequest) (page *etcdserverpb.RangeResponse, tooLong bool, err error) {
	for {
		page, err = l.get(ctx, req)
		if status.Code(err) != codes.ResourceExhausted || errors.Is(rpctypes.Error(err), rpctypes.ErrTooManyRequests) {
			return page, false, err
		}
		if req.Limit == 1 {
			break
		}
		req.Limit = max(req.Limit/4, 1)
	}
	name := &etcdserverpb.RangeRequest{Key: req.Key, RangeEnd: req.RangeEnd, Revision: req.Revision, Limit: 1, KeysOnly: true}
	if page, err = l.get(ctx, name); err != nil {
		return nil, false, fmt.Errorf("the first key from %q on is longer than an answer of %d bytes: %w", foreign.Shown(string(req.Key)), maxAnswer, err)
	}
	return page, true, nil
}

// end is when a lease ends, asked once for each. One that ended since the revision that
// is read has its keys end now.
func (l *Live) end(ctx context.Context, known map[int64]time.Time, id int64) (time.Time, error) {
	if at, ok := known[id]; ok {
		return at, nil
	}
	if len(known) >= maxLeases {
		return time.Time{}, fmt.Errorf("it has more than %d leases", maxLeases)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer, err := l.lease.LeaseTimeToLive(ctx, &etcdserverpb.LeaseTimeToLiveRequest{ID: id}, grpc.WaitForReady(true))
	if err != nil && !errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound) {
		return time.Time{}, err
	}
	at := time.Now()
	if seconds := answer.GetTTL(); err == nil && seconds > 0 && seconds < 1<<31 {
		at = at.Add(time.Duration(seconds) * time.Second)
	}
	known[id] = at
	return at, nil
}
