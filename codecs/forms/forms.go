// Package forms is the table of the served wire forms: their names, what they can encode, and their codecs. A
// new form is a package next to this one and a line of the table.
package forms

import (
	"slices"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/cbor"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/codecs/yaml"
)

// Forms are the wire forms of a server. The zero value reads and writes JSON with the standard
// packages, and has no CBOR.
type Forms struct {
	JSON json.Codec // also used by the other forms, which are converted from and to JSON
	CBOR bool       // serve CBOR: the feature gate CBORServingAndStorage
}

// form is a line of the table.
type form struct {
	mediaType string
	codec     func(Forms) codecs.Codec
	stream    string // media type for watches that routes of collections announce; empty: none
	custom    bool   // carries custom resources
	gated     bool   // served where Forms.CBOR is set
}

// table has the forms in the order in which a server prefers them.
var table = []form{
	{mediaType: codecs.JSON, codec: func(f Forms) codecs.Codec { return f.JSON }, stream: codecs.JSON + ";stream=watch", custom: true},
	{mediaType: codecs.YAML, codec: func(f Forms) codecs.Codec { return yaml.Codec{JSON: f.JSON} }, custom: true},
	{mediaType: codecs.Protobuf, codec: func(f Forms) codecs.Codec { return protobuf.Codec{JSON: f.JSON} }, stream: codecs.Protobuf + ";stream=watch"},
	{mediaType: codecs.CBOR, codec: func(f Forms) codecs.Codec { return cbor.Codec{JSON: f.JSON} }, stream: codecs.CBORSeq, custom: true, gated: true},
}

// patches are the media types of patches in the order in which they are announced.
var patches = []struct {
	mediaType     string
	builtIn, cbor bool // for built-in resources alone, with CBOR alone
}{
	{mediaType: codecs.PatchJSON},
	{mediaType: codecs.PatchMerge},
	{mediaType: codecs.PatchStrategic, builtIn: true},
	{mediaType: codecs.PatchApplyYAML},
	{mediaType: codecs.PatchApplyCBOR, cbor: true},
}

// Codec returns the codec of a media type, JSON's for an unknown one. The lists below, and negotiation, decide
// whether a request may use it.
func (f Forms) Codec(mediaType string) codecs.Codec {
	for i := range table {
		if table[i].mediaType == mediaType {
			return table[i].codec(f)
		}
	}
	return f.JSON
}

// Discovery returns the codecs of discovery documents, except those of built-in versions, which are Versions: the
// others are never CBOR.
func (f Forms) Discovery() []codecs.Codec { return Forms{JSON: f.JSON}.Versions() }

// Versions returns the codecs of all that a server serves.
func (f Forms) Versions() (list []codecs.Codec) {
	for i := range table {
		if !table[i].gated || f.CBOR {
			list = append(list, table[i].codec(f))
		}
	}
	return list
}

// Streamer returns the codec of a media type whose lists and events are put together from messages;
// nil for YAML, whose lists are written by package yaml from JSON.
func (f Forms) Streamer(mediaType string) codecs.Streamer {
	s, _ := f.Codec(mediaType).(codecs.Streamer)
	return s
}

// lists are media types, without and with CBOR. They are made once, because every request needs them, and
// must not be changed.
type lists struct{ plain, custom, collection, patch, customPatch []string }

var made = [2]lists{makeLists(false), makeLists(true)}

func makeLists(cbor bool) (l lists) {
	var streams []string
	for _, f := range table {
		if f.gated && !cbor {
			continue
		}
		l.plain = append(l.plain, f.mediaType)
		if f.custom {
			l.custom = append(l.custom, f.mediaType)
		}
		if f.stream != "" {
			streams = append(streams, f.stream)
		}
	}
	l.collection = slices.Concat(l.plain, streams)
	for _, p := range patches {
		if p.cbor && !cbor {
			continue
		}
		l.patch = append(l.patch, p.mediaType)
		if !p.builtIn {
			l.customPatch = append(l.customPatch, p.mediaType)
		}
	}
	return l
}

func (f Forms) lists() *lists {
	if f.CBOR {
		return &made[1]
	}
	return &made[0]
}

// Types lists the media types of built-in resources. The list is shared, like all of these.
func (f Forms) Types() []string { return f.lists().plain }

// CustomTypes lists the media types of custom resources themselves: codecs.Offer.Plain.
func (f Forms) CustomTypes() []string { return f.lists().custom }

// ListTypes lists the media types that routes of watchable collections announce.
func (f Forms) ListTypes() []string { return f.lists().collection }

// PatchTypes lists the patch types of a resource.
func (f Forms) PatchTypes(custom bool) []string {
	if custom {
		return f.lists().customPatch
	}
	return f.lists().patch
}
