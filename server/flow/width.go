package flow

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/flow/seats"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/request"
)

// The expected cost of requests, as on a stock server: a seat for each number of objects that are read, and
// of watchers that a write notifies, each for a time.
const (
	objectsOfSeat  = 100
	watchersOfSeat = 10
	tellingOfSeat  = 5 * time.Millisecond
)

// widen estimates how many seats a request takes.
func (c *Classifier) widen(r *seats.Request, k *Class, info *request.Info) {
	r.Seats = 1
	if c.config.Catalogue == nil || !info.IsResource {
		return
	}
	switch info.Verb {
	case "list", "watch":
		r.Seats = c.reading(k, info)
	case "create", "update", "patch", "delete":
		c.telling(r, k, info)
	}
	k.counts.estimated.Observe(float64(max(r.Seats, r.Extra)))
}

// reading returns the width of a list, and of a watch that begins with existing objects.
func (c *Classifier) reading(k *Class, info *request.Info) int {
	if info.Name != "" || info.Verb == "watch" && !initialEvents(info) {
		return 1
	}
	res := c.stored(info)
	if res == nil {
		return min(c.past(info), k.level.Most())
	}
	stored := c.count(res, info.Namespace)
	if 2*stored <= objectsOfSeat {
		return 1
	}
	objects, limit := stored, stored
	query := info.Query
	page := query.Get("limit")
	if page != "" {
		if n, err := strconv.Atoi(page); err == nil && n > 0 && n < stored {
			limit = n
		}
	}
	match := metav1.ResourceVersionMatch(query.Get("resourceVersionMatch"))
	paged := page != "" && page != "0" && query.Get("resourceVersion") != "0" || query.Get("continue") != ""
	switch {
	case info.Verb == "watch" || !paged && (match == "" || match == metav1.ResourceVersionMatchNotOlderThan):
	case info.FieldSelector != "" || info.LabelSelector != "" || query.Get("shardSelector") != "":
		objects = stored + limit
	default:
		objects = 2 * limit
	}
	return min(max((objects+objectsOfSeat-1)/objectsOfSeat, 1), k.level.Most())
}

// past returns the width of a list that is read from the table: a page is not longer than a seat reads, and the
// selector is applied to each row.
func (c *Classifier) past(info *request.Info) int {
	if r := c.config.Catalogue.Lookup(info.Group, info.Version, info.Resource); r != nil && r.Reserved && info.Verb == "list" {
		return 2
	}
	return 1
}

func initialEvents(info *request.Info) bool {
	ask, err := strconv.ParseBool(info.Query.Get("sendInitialEvents"))
	return err == nil && ask
}

// telling adds seats to a write for the time after it, for its watchers.
func (c *Classifier) telling(r *seats.Request, k *Class, info *request.Info) {
	if info.Subresource == "token" && info.Resource == "serviceaccounts" {
		return // no watcher is notified
	}
	res := c.stored(info)
	if res == nil {
		return
	}
	n := c.cache.MatchingWatchers(res.Storage.Key, info.Namespace, info.Name)
	k.counts.watchers.Observe(float64(n))
	if n < watchersOfSeat {
		return
	}
	wanted := (n + watchersOfSeat - 1) / watchersOfSeat
	r.Extra = min(wanted, k.level.Most())
	r.ExtraFor = time.Duration(wanted) * tellingOfSeat / time.Duration(r.Extra)
}

// stored returns the resource of a request, if its objects are stored.
func (c *Classifier) stored(info *request.Info) *kinds.Resource {
	res := c.config.Catalogue.Lookup(info.Group, info.Version, info.Resource)
	if res == nil || res.Storage == nil {
		return nil
	}
	return res
}

// count returns the number of objects in a namespace, or in all.
func (c *Classifier) count(res *kinds.Resource, namespace string) int {
	if namespace == "" {
		return c.cache.Count(res.Storage.Key)
	}
	return c.cache.Snapshot(res.Storage.Key).Count(namespace, cache.Position{})
}
