// Package documents keeps what aggregated API servers say of themselves: which resources
// they serve (discovery), and what these look like (OpenAPI).
//
// It promises: nobody who asks waits for another server. Run fetches documents beside, when
// an APIService changes and each minute after that, and readers are given what came last.
// What a server says counts for the group versions that APIServices leave to it, and for no
// others. Of a server whose list of resources cannot be had it is said that its versions are
// stale, and have no resources; of its OpenAPI documents the last ones are kept, as long as
// its APIService is there.
//
// What it costs, and who may cause it: who may write APIServices, and the servers that they
// name. Each server is asked one thing at a time, limits.go says for how long and for how
// many bytes; a server that fails is asked less and less often, up to each minute for
// discovery and each hour for OpenAPI, until its APIService changes. No more than 32 servers
// are asked at once, so that those that stall are waited for without the others once they
// have failed.
//
// Goroutines: Run is one, and owns one for each server that is being asked, which it waits
// for at its end. Locks: Documents.mu, under which nothing is fetched or written; the
// follower's lock of package aggregator is taken and given back before it.
package documents
