package json

import (
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// clean makes version 2 read what encoding/json reads, but refuse everything that
// the exact way would report or treat specially.
var clean = jsonv2.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsonv2.MatchCaseInsensitiveNames(false),
	jsonv2.RejectUnknownMembers(true),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
)

// decodeFast fails on any input that is not clean, leaving obj half filled.
func decodeFast(data []byte, obj any) error { return jsonv2.Unmarshal(data, obj, clean) }
