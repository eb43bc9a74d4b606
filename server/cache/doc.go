// Package cache keeps the live objects and their recent changes in memory, as bytes.
//
// It promises: readers see each resource at a revision, in key order, without
// decoding; a snapshot costs O(1) and never changes; an event is framed once for
// each wire form and shared by all its watchers; a slow watcher is cut off, never
// waited for. The store's feed is its only writer.
//
// Goroutines: Load reads ahead in one that ends with it; Run is for the server to start.
package cache
