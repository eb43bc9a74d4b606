package sqlstore

import "time"

// Where many writers wait for one commit, the processors are the bound: all writers continue at once when they are
// acknowledged, and whatever else is to run waits behind them. So a group of crowd rows or more is acknowledged in parts,
// each after its changes have been handed to watchers: writers wait, and watchers do not. Smaller groups are acknowledged at
// once. Handing changes on waits for no client, only for processors; the bound of deliverFor for a group is for so many
// watchers that these take longer.
const (
	crowd      = 8
	partRows   = 64
	partBytes  = 128 << 10 // a part has partRows, or fewer rows that have so many bytes
	deliverFor = 500 * time.Millisecond
)

// acknowledge gives the changes of a committed batch, which are in f.changes, to the sink, and finishes its writes.
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
		// What a look has read from the table already is not repeated.
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

// deliverWithin has the sink deliver within the time that is left, and returns what is left after it.
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
