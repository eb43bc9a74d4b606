// Package watches serves watches: for each a stream of events, from the revision that the client names until its time is up.
//
//	Server.New          watches.go   a watch, from negotiated parameters; start finds the watcher of the cache
//	Watch.Serve         watches.go   sends the header; from here on errors are events
//	  initial           initial.go   the objects that exist at the beginning
//	  drain, push       deliver.go   changes and bookmarks
//	  detach            deliver.go   the watch goes on after its handler has returned
//	timerWheel          timerwheel.go  one timer for the bookmarks and the ends of all watches
//	directOutput        output.go    writes to a wire.Stream
//	standardOutput      output_standard.go   writes to the request's http.ResponseWriter
//	websocketOutput     output_websocket.go  one message for each frame
//
// An answers.View encodes each frame once for all watches in the same form: the cache keeps it with the event.
//
// Goroutines and locks:
//
//	handler (of h2, h1stream or net/http)           rounds of the cache
//	  |  holds stream.mu, except while it waits         |
//	  |  for the time of a bookmark, for the            |  Notify: TryLock stream.mu, take,
//	  |  client's end, or to be woken                   |  and write without waiting
//	  v                                                 v
//	drain ----------------> deliver <---------------- push, or else wake the handler
//	                           |
//	                           v
//	                         output
//
// With the direct output the handler returns if all filters around it allow that (request.Scope.Detach). What stays in
// memory is the stream, the watcher, and the functions to call at the end. What push cannot do without waiting is done by
// work, in one goroutine at a time, which ends when nothing is left to do; the connection waits for its end. The timer wheel calls
// push when bookmarks are due, in the goroutine of its timer, for all watches of a connection together. The request ends
// once, after the answer.
//
// Only the direct output has hooks, because it can write without waiting for the client. With the other outputs the handler
// does all the work, woken by the cache. The handler of a WebSocket starts one more goroutine, which reads until the client
// has gone, and waits for it. A panic in push ends its own watch alone.
//
// A watch costs one handler, where the handler stays, and what the cache keeps for a slow watcher. Package filters bounds the
// number of watches, of a user and of all. What a client does not read is bounded by a chunk and its socket's buffer; a
// write may take 30 seconds, and the initial events a minute, or the time that their bytes take at 256 KB a second.
package watches
