package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// truncated marks events that lack bodies, or parts of texts and lists.
const truncated = "audit.k8s.io/truncated"

// Truncate shortens events that are too large for a backend: it drops their bodies, and if that does not suffice, shortens their texts
// and lists. Otherwise a client could keep a request out of the log by a long query. Truncate drops and counts an event that is still too
// large.
type Truncate struct {
	Sink
	Metrics  *Metrics
	MaxEvent int // bytes
	Report   func(error)
}

// Take implements Sink.
func (t *Truncate) Take(event []byte) error {
	if len(event) <= t.MaxEvent {
		return t.Sink.Take(event)
	}
	small, err := shortened(event, t.MaxEvent)
	if err != nil {
		t.Metrics.Lost("truncate", 1)
		if t.Report != nil {
			t.Report(err)
		}
		return nil
	}
	return t.Sink.Take(small)
}

// textBounds are the bounds in bytes for each text of an event without bodies, from none to the smallest. They are tried in order.
var textBounds = []int{math.MaxInt, 4096, 256, 32}

// shortened returns an event without bodies, of at most limit bytes, with an annotation.
func shortened(line []byte, limit int) (small []byte, err error) {
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, fmt.Errorf("truncating an audit event: %w", err)
	}
	e.RequestObject, e.ResponseObject = nil, nil
	for _, most := range textBounds {
		e.shorten(most)
		if e.Annotations == nil {
			e.Annotations = map[string]string{}
		}
		e.Annotations[truncated] = "true"
		if small, err = json.Marshal(&e); err != nil || len(small) <= limit {
			return small, err
		}
	}
	return nil, fmt.Errorf("an audit event is too large even after truncating: %d bytes", len(small))
}

// shorten cuts the texts that clients, authenticators, webhooks and errors determine at most bytes, and lists at a sixteenth as many
// elements. Below the first bound it also drops the details of the answer.
func (e *Event) shorten(most int) {
	e.RequestURI, e.UserAgent, e.Verb = cut(e.RequestURI, most), cut(e.UserAgent, most), cut(e.Verb, most)
	if ref := e.ObjectRef; ref != nil {
		for _, text := range []*string{&ref.Resource, &ref.Namespace, &ref.Name, &ref.UID, &ref.APIGroup, &ref.APIVersion, &ref.ResourceVersion, &ref.Subresource} {
			*text = cut(*text, most)
		}
	}
	if st := e.ResponseStatus; st != nil && most < math.MaxInt {
		st.Message, st.Reason, st.Details = cut(st.Message, most), metav1.StatusReason(cut(string(st.Reason), most)), nil
	}
	shortenUser(&e.User, most)
	if e.ImpersonatedUser != nil {
		shortenUser(e.ImpersonatedUser, most)
	}
	e.Annotations = cutMap(e.Annotations, most, func(value string) string { return cut(value, most) })
}

func shortenUser(u *authenticationv1.UserInfo, most int) {
	u.Username, u.UID, u.Groups = cut(u.Username, most), cut(u.UID, most), cutList(u.Groups, most)
	u.Extra = cutMap(u.Extra, most, func(values authenticationv1.ExtraValue) authenticationv1.ExtraValue { return cutList(values, most) })
}

// cut returns the first bytes of a text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

func cutList(list []string, most int) []string {
	list = list[:min(len(list), most/16)]
	for i := range list {
		list[i] = cut(list[i], most)
	}
	return list
}

// cutMap returns the first entries by key, with shorter keys and values.
func cutMap[V any](m map[string]V, most int, shorter func(V) V) map[string]V {
	if m == nil {
		return nil
	}
	out := make(map[string]V, len(m))
	keys := slices.Sorted(maps.Keys(m))
	for _, key := range keys[:min(len(keys), most/16)] {
		out[cut(key, most)] = shorter(m[key])
	}
	return out
}

// parts cuts events into batches of at most limit bytes; a larger event is a batch of its own. 0: no limit.
func parts(events [][]byte, limit int) [][][]byte {
	if limit <= 0 {
		return [][][]byte{events}
	}
	var all [][][]byte
	start, size := 0, 0
	for i, e := range events {
		if size += len(e); size > limit && i > start {
			all = append(all, events[start:i])
			start, size = i, len(e)
		}
	}
	return append(all, events[start:])
}
