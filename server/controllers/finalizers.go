package controllers

import (
	"encoding/json"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache"
)

// finalizersOf reads the finalizers of an object.
func finalizersOf(it *cache.Item) (finalizers []string) {
	if it.Corrupt != nil {
		return nil
	}
	if list := scan.Lookup(it.Peek(), "metadata", "finalizers"); list == nil || json.Unmarshal(list, &finalizers) != nil {
		return nil
	}
	return finalizers
}

// textOf reads a string of an object, without decoding the rest; "": there is none.
func textOf(it *cache.Item, path ...string) (text string) {
	if it.Corrupt != nil {
		return ""
	}
	if value := scan.Lookup(it.Peek(), path...); value == nil || json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}
