package sqlstore

import "time"

// When many writers wait for one commit, the processors are the bottleneck: as soon as the store acknowledges the commit, all
// writers run, and the goroutines that serve watchers wait behind them. So the store acknowledges a group of crowd rows or more
// in parts, each after the sink has handed the changes of that part to watchers. It acknowledges smaller groups at once.
// Deliver waits for processors and never for a client; deliverFor bounds the wait of a group that has very many watchers.
const (
	crowd      = 8
	partRows   = 64
	partBytes  = 128 << 10 // a part has partRows rows, or fewer with this many bytes
	deliverFor = 500 * time.Millisecond
)

// acknowledge passes the changes of a committed batch, which are in f.changes, to the sink, and finishes the writes.
func (f *feed) acknowledge(batch []*write) {
	deliverer, _ := f.sink.(Deliverer)
	if len(f.changes) < crowd {
		deliverer = nil
	}
	left := deliverFor
	for changes := f.changes; len(batch) > 0; {
		writes, rows := len(batch), len(changes)
		if deliverer != nil && left > 0 {
			writes, rows = part(batch)
		}
		// The feed may have read the first changes from the table already.
		if rows > 0 {
			if done := f.applied.Load() - changes[0].Revision + 1; done < int64(rows) {
				f.deliver(changes[done:rows])
				left = deliverWithin(deliverer, left)
			}
		}
		settle(batch[:writes], nil)
		batch, changes = batch[writes:], changes[rows:]
	}
}

// deliverWithin calls Deliver with the remaining time, and returns the time that remains after it.
func deliverWithin(d Deliverer, left time.Duration) time.Duration {
	if d == nil || left <= 0 {
		return left
	}
	began := time.Now()
	d.Deliver(left)
	return left - time.Since(began)
}

// part returns how many writes are the next part of a batch, and how many rows they wrote.
func part(batch []*write) (writes, rows int) {
	for bytes := 0; writes < len(batch) && rows < partRows && bytes < partBytes; writes++ {
		if w := batch[writes]; w.out.Err == nil {
			rows += len(w.txn.Ops)
			bytes += w.size
		}
	}
	return writes, rows
}
