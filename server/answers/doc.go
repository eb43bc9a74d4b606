// Package answers writes objects to clients: items, lists, tables, metadata and
// watch events, in every wire form.
//
// A request negotiates a form. A View is how it sees items in that form, a
// Form makes the bytes, and Answers writes them:
//
//	Item, Page        answers.go    stored objects: one, or a list of them; Written: the result of a write
//	Object, Ended     unstored.go   objects that are not stored: reviews, tokens, what an update removed
//	Scale             scale.go      the scale of an object, which has columns of its own
//	Generated         generated.go  objects with columns that were made for the request
//	Fail              answers.go    errors, by package status
//	      |
//	      v
//	View              answers.go    Event and Error for watches; Bookmark in bookmark.go
//	      |
//	      v
//	Form              form.go       Object, ListHead, Item, ListTail, Event
//	  jsonForm        json.go         whole objects, as they are stored where that will do
//	  metadataForm    metadata.go     PartialObjectMetadata; also what the other forms have of it
//	  tableForm       table.go        Table: rows of cells, kept with the items
//	  yamlForm        yaml.go         what one of the three makes, as YAML
//	  protobufForm    protobuf.go     messages, kept with the items
//	  cborForm        cbor.go         maps, kept with the items
//	      |
//	      v
//	write.go   a list piece by piece, or from cached compressed pieces; indented, compressed
//	turnscheduler.go  long answers of many users take turns
//
// What surrounds the items of a list, and the frames of a watch, are made by the codecs
// (codecs.Streamer); what an item looks like in a version, and its columns, are made by
// package objects and the kinds.
//
// It promises: no stored object is decoded or encoded to be read in the version and form it
// was read in before; a list takes no more memory at once than a piece (Chunk) and what its
// items keep; once an answer has begun, only the client's disconnection can fail it. It starts
// no goroutine.
package answers
