package builtin

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/core"
	"github.com/rowlock/rowlock/server/kinds/events"
)

// eventStorage is shared by the events of core/v1, which is the stored form, and those of events.k8s.io/v1.
func (c Config) eventStorage() *kinds.Storage {
	ttl := c.EventTTL
	ttl = cmp.Or(ttl, time.Hour)
	return &kinds.Storage{
		Key: "events", GVK: corev1.SchemeGroupVersion.WithKind("Event"),
		Strategy: core.Event, Uncached: true, Fields: core.EventFields, TTL: func(kinds.Object) time.Duration { return ttl },
	}
}

func eventsV1(storage *kinds.Storage) []*kinds.Resource {
	return rows("events.k8s.io", "v1",
		&kinds.Resource{
			Plural: "events", Kind: "Event", Namespaced: true, ShortNames: []string{"ev"},
			New: object[eventsv1.Event](), NewList: list[eventsv1.EventList](),
			Storage: storage, Columns: core.EventColumns,
			ToStorage: events.ToCore, FromStorage: events.FromCore, FieldLabels: events.FieldLabels,
		},
	)
}
