// Package watches serves watches: a stream of events for each, from where the client
// wants it to begin until its time is up.
//
//	Server.New        watches.go           one watch, from negotiated parameters
//	Watch.Serve       watches.go           to its end
//	  start           start.go             where it begins: the watcher of the cache, and what there is
//	  begin           watches.go           the header; from here on errors are events
//	  stream          stream.go            waits, and writes what there is to say
//	    initial       initial.go           objects that are there already
//	    drain, push   deliver.go           changes and bookmarks
//	  outlive         outlive.go           ... when the handler has returned
//	    clock         clock.go             what is due when
//	  output          output.go            where frames go
//	    direct        output_direct.go     a wire.Stream
//	    standard      output_standard.go   the request's own writer
//	    websocket     output_websocket.go  one message for each frame
//
// Frames are made by an answers.View, once for all watches in the same form: the cache
// keeps them with the event.
//
// Goroutines and locks:
//
//	handler (h2's, h1stream's or net/http's)        cache's fan-out goroutines
//	  |  holds stream.mu, but while it waits            |
//	  |  for the time of a bookmark, for the            |  hooks.notify: TryLock stream.mu,
//	  |  client's end, or to be woken                   |  take, and write without waiting
//	  v                                                 v
//	drain ----------------> deliver <---------------- push, or else wake the handler
//	                           |
//	                           v
//	                         output
//
// With the direct output the handler returns, where all that stands around it knows of that
// (request.Scope.Outlive): what is kept then is the stream, the watcher, and what is to be
// done at the end. Its part is done by a goroutine that work is run in while there is
// something to do that push cannot do without waiting, one at a time; the connection waits
// for its end. The clock calls push for bookmarks that are due, in the goroutine of its timer,
// for all watches of a connection together. The request ends once, after the answer.
//
// Only the direct output has hooks: it can write without waiting for the client. With the
// others the handler does all the work, woken by the cache. The handler of a WebSocket has
// one goroutine more, which reads until the client has gone, and which it waits for. A
// panic of push is that of the handler, so that it costs its own watch alone.
//
// A watch costs one handler where that stays, and what the cache keeps for a watcher that is slow. How many
// there may be, of a user and of all, is bounded by package filters. What a client does
// not take is bounded by a piece and its socket's buffer; it has 30 seconds for a write, and a
// minute, or the time that its bytes take at 256 KB a second, for what there is at first.
package watches
