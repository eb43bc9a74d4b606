// Package documents caches the documents of aggregated API servers: which resources
// they serve (discovery), and their schemas (OpenAPI).
//
// It promises: no reader waits for another server. Run fetches documents in the background, when
// an APIService changes and once a minute, and readers get the last ones.
// The documents of a server count for the group versions that APIServices delegate to it, and for no
// others. If the resource list of a server cannot be fetched, its versions are reported as
// stale and without resources; its last OpenAPI documents remain as
// long as its APIService exists.
//
// Cost, and its cause: clients that may write APIServices, and the servers that they
// name. Each server gets one request at a time; limits.go bounds its time and
// bytes. The intervals for a server that fails grow up to a minute for
// discovery and an hour for OpenAPI, until its APIService changes. Run fetches from at most
// 32 servers at once, so that servers which stall delay only one another once they
// have failed.
//
// Goroutines: Run is one, and owns one for each server that it is fetching from, which it waits
// for at its end. Locks: Documents.mu, under which nothing is fetched or written; the
// follower's lock of package aggregator is taken and released before it.
package documents
