// Package cache keeps the live objects and their recent changes in memory, as bytes.
//
// Readers see each resource at a revision, in key order, without decoding. A snapshot costs O(1) and never changes. An event
// is encoded once for each wire form, for all watchers of that form. The cache ends a watcher that is too slow; no writer
// waits for one. The store is the only writer.
//
// Each file uses only those below it:
//
//	run.go              Run: drops old events and states, packs, and ends slow watchers; Close
//	cachefile.go        LoadFile: the live objects from a cache file (package file)
//	cachefile_write.go  WriteFile: the live objects to a cache file, where their values stay (package values)
//	itemreader.go makes items of the blocks of a cache file
//	load.go             Load: all live rows, read by several goroutines; again if the store has lost its place in the log
//	corrupt.go          CheckRows, Corrupt, Reopen: objects that cannot be read
//	backfill.go         Backfill: the events of before the start, from the store's log
//	watching.go         Watch, WatchNow, End: the watchers of a storage
//	cache.go            Cache: Apply takes changes from the store; Get, Snapshot and At are for readers
//	pack.go             Pack: compresses objects that are seldom read, in rounds
//	resource.go         the objects of one storage: applies changes, makes states for readers
//	pending.go          Pending: the item of a write
//	labelbuild.go the same: builds the index of labels while objects change
//	packer.go           packs one item
//	dispatch.go         finds the watchers of an event, and queues it; slow watchers
//	round.go            notifies the watchers that have events, in rounds
//	watch.go            Watcher.Take: from its queue, the event log or the store's log
//	watchers.go         finds the watchers that may see an event
//	watcher.go          Watcher: its three states and its queue
//	streamshared.go     what the streams of all storages share
//	event.go            Event, Delivery, and the log of recent events
//	snapshot.go         Snapshot and Selection, for readers
//	filter.go           Filter: a compiled selector
//	terms.go            matches a selector of many terms or values
//	index.go            builds and updates the index of fields or labels
//	postings.go         the items that have a term
//	items.go            trees of items in key order
//	unreadable.go Try: for goroutines that an item which cannot be read must not end
//	forms.go            the wire forms of an item
//	item.go             Item: one version of one object
//	body.go             the bytes of an item, plain or packed
//
// Package metadata scans labels, fields and owners in an object's bytes; package packing compresses objects.
//
// Locks, in the order in which they are taken: Cache.making (to add a resource, or to reload), resource.mu (to change a
// resource, or to add or remove a watcher), then resource.trees (to change the trees, or to make a state of them) or
// Watcher.mu (its queue). Hooks and Group are called without a lock, except Hooks.Wake, which must not wait, and
// Config.Corrupt, which must not read the cache. pins.mu, streamShared.mu and Cache.waitMu guard small lists and are taken last.
//
// Goroutines: Load ends those that it starts. A resource has at most half as many goroutines as there are processors for its
// rounds; they end when no watcher waits. Close waits for them, and for one that indexes labels. The
// server starts Run, which packs in a goroutine that ends with it.
package cache
