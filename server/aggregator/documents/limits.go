package documents

import "time"

// Limits on the cost of a server.
const (
	atOnce = 32 // concurrent fetches

	discoveryTimeout = 5 * time.Second
	openAPITimeout   = 30 * time.Second

	interval         = time.Minute // between looks at a server that answers
	discoveryRetry   = time.Second // after the first failure; it doubles up to interval
	openAPIRetry     = time.Minute // the same, up to openAPIRetryMost
	openAPIRetryMost = time.Hour

	maxDiscovery = 4 << 20  // bytes of a discovery document
	maxWeight    = 32 << 20 // bytes that it becomes, at most
	maxResources = 10_000   // in a version, subresources too
	maxIndex     = 1 << 20  // bytes of the list of OpenAPI documents
	maxSwagger   = 16 << 20 // bytes of an OpenAPI 2 document
	maxPaths     = 10_000   // in it
	maxValues    = 400_000  // objects and lists in it
	maxDepth     = 200      // of a document
	maxKept      = 64 << 20 // bytes of OpenAPI 2 documents of all servers, as they are merged
	maxETag      = 256      // bytes of a tag; longer ones are forgotten
)
