// Package cache keeps the live objects and their recent changes in memory, as bytes.
//
// It promises: readers see each resource at a revision, in key order, without
// decoding; a snapshot costs O(1) and never changes; an event is framed once for
// each wire form and shared by all its watchers; a watcher that is too slow is ended, and
// no writer waits for it. The store is the only writer.
//
// Below it: package packing has what it takes to keep objects packed, package file what a cache file looks like.
//
// Who calls whom:
//
//	Load (load.go)        all live rows, once, by several readers (loading.go); again if the store has lost its place in the log
//	Apply (cache.go)      changes in revision order, from the store's follower alone
//	  resource.apply      resource.go   the objects of one storage; the next reader makes a state of them
//	    eventLog.add      eventlog.go   recent events, for watches from a revision and for rewind
//	    dispatch          watchers.go   finds the watchers of an event, and queues it for each
//	    watchers.wake     watchers.go   Ready is signalled; hooks are left to a fanOut
//	      fanOut          fanout.go     calls the hooks
//	LoadFile, WriteFile   fileread.go, filewrite.go  the live objects from a cache file, and into one
//	Pack (pack.go)        packs items that are seldom read (packer.go), in rounds (packloop.go)
//	Reopen (reopen.go)    tries again to decrypt objects that could not be decrypted
//	indexLabels           labelindex.go the first label selector lets the index be made, beside the lock
//	Snapshot, At, Get     snapshot.go   readers; they take the state that was made last, or make one
//	Watch, WatchNow       watch.go      a Watcher, whose states are in watchers.go; Take returns what is queued, or catches up
//	Run (cache.go)        forgets old events and snapshots, and ends slow watchers (slow.go)
//
// Locks, in the order in which they are taken: Cache.making (to add a resource or
// reload), resource.mu (to change a resource, or add or remove a watcher), then resource.trees
// (to change what readers are shown, or make a state of it) or Watcher.mu (its queue). Hooks
// and Group are called with none of them held, except the hook wake, which must not wait, and
// Config.Corrupt, which must not read the cache. pins.mu and Cache.waitMu guard small lists and
// are taken last.
//
// Goroutines: Load reads ahead in one that ends with it; a fanOut has at most half as many
// as there are processors for each batch of changes, which end when all watchers have been
// notified, and which Close waits for, as for one that indexes labels; Run is for the server to start, and packs in one that
// ends with it.
package cache
