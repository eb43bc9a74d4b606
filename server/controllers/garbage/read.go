package garbage

import (
	"context"
	"log/slog"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
)

// metadata is the metadata of an object that the collector examines.
type metadata struct {
	cache.OwnerInfo
	finalizers []byte        // the list as stored
	refs       []cache.Owner // with their JSON
}

// logUnread logs that an object cannot be read. Until it can, the collector leaves it as it is.
func (s *state) logUnread(item *cache.Item, err error) {
	s.failed.Log(context.Background(), s.Log, slog.LevelWarn, "collecting garbage", "namespace", item.Namespace, "name", item.Name, "error", err)
}

// read reads all of it, from the object's value.
func read(item *cache.Item) metadata {
	m := metadata{OwnerInfo: item.OwnerInfo()}
	m.finalizers, m.refs = item.Written()
	return m
}

// stateOf returns the reason for which an object waits, for the graph. Like a stock collector it deletes
// dependents first if an object has both finalizers.
func stateOf(info cache.OwnerInfo) graph.State {
	switch {
	case !info.Deleting:
		return 0
	case info.Orphan:
		return graph.Orphaning
	case info.Foreground:
		return graph.Foreground
	}
	return 0
}

// subject is an object that a worker processes.
type subject struct {
	id      graph.ID
	storage string
	item    *cache.Item
	metadata
}

// blocks reports whether an object blocks the deletion of any owner.
func (s *subject) blocks() bool {
	for i := range s.refs {
		if s.refs[i].Blocks {
			return true
		}
	}
	return false
}
