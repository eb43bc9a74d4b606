package controllers

import (
	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
)

// finalizersOf reads the finalizers of an object.
func finalizersOf(it *cache.Item) []string {
	var obj struct {
		Metadata struct {
			Finalizers []string `json:"finalizers"`
		} `json:"metadata"`
	}
	if it.Corrupt != nil {
		return nil
	}
	if _, err := jsoncodec.Unmarshal(it.JSON, &obj, codecs.Ignore); err != nil {
		return nil
	}
	return obj.Metadata.Finalizers
}
