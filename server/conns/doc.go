// Package conns is what lies between the server's HTTP packages and the connections of
// clients. It has three jobs, which share the layer below TLS.
//
// First, bulk leaves in few large pieces. Package tls hands every record of 16 KB to the
// kernel by itself, and package http2 makes a full and a tiny record of every frame. A
// coalescer collects what more will follow, for a millisecond at most.
//
// Second, watches leave packages net/http and http2, which take more memory and time for
// them than they need. Over HTTP/1.1 their connections are hijacked; over HTTP/2 their
// data frames are put between those of package http2. Both are a Stream, and can go on when
// their handler has returned (outlive.go): package http2 then takes the stream for ended, and
// the frame that says so does not leave; one handler of the connection stays for all. Where nothing but
// such answers is under way the connection rests (http2_rest.go): package http2 leaves it, with that
// handler, and comes again when the client says something that only it can answer. A Delivery
// decides for the whole server whether that is done, tries it before clients come, and
// goes back to the standard packages for good when it fails.
//
// Third, short requests over HTTP/2 are served beside package http2, which takes a dozen
// hops between goroutines for each (short.go): their frames are taken out of what it reads,
// and their answers put between its own, by the goroutine that made them.
//
//	standard answer           watch, HTTP/1.1            watch, HTTP/2
//	      |                         |                          |
//	net/http, http2      Hijacker    Delivery.Open    Delivery.Open
//	      |                         |                          |
//	      |                    http1Stream                http2Stream --- flowControl
//	      |                         |                          |  windows and tokens
//	      |                         |                     frameQueue
//	      v                         |                          |
//	HTTP2Conn (HTTP/2) -------------|--------------------------+
//	  frameReader  <- from client   |        frameTracker: where frames end
//	  coalescer    -> to client     |
//	      v                         v
//	    tls.Conn  <-------------- tls.Conn
//	      v
//	    recordConn: coalescer, until a sendQueue takes over
//	      v
//	    sendQueue: writes what the kernel has room for, and keeps the rest
//	      v
//	    net.Conn
//
// Locks, in the order in which they are taken: coalescer.mu of an HTTP2Conn (its tracker
// and partial frame are guarded by it), shorts.mu, then flowControl.mu or frameQueue.mu,
// which are never held together, outlivers.mu before flowControl.mu, then the lock of tls.Conn, then coalescer.mu of a
// recordConn or sendQueue.mu. shortAnswer.mu is taken before those of flowControl and
// frameQueue. Hijacker.mu and http1Stream.mu are held alone. HTTP2Conn.reading comes before all.
// TryWrite over HTTP/2 takes coalescer.mu only if nobody has it: whoever has it sends what
// was queued meanwhile.
//
// Goroutines: Hijacker has one for each request that may be a watch over HTTP/1.1, and
// Close waits for them, and for one that waits for what the client sends while an answer goes on
// without its handler; an HTTP2Conn has one for each short request, and one in its sendQueue
// if its client is slow, which ends with the client's time or the connection. One goes on to
// read when package http2 has closed a connection with short requests under way, until they
// are answered, or answers that go on have ended. A session has one, in which package http2 serves, and which
// ServeHTTP2 waits for, as do those of await for the reads that they wait for. ServeHTTP2 waits for all of these, and for all answers that go on without their
// handlers. The timer of shorts ends with the connection, and those of
// a coalescer run once. SelfTest waits for all that it starts, but for some seconds only: a
// direct way that hangs is left behind, once in the life of a server.
//
// It promises: bytes keep their order; what is not bulk is written at once; what is
// collected waits a millisecond for more at most; the error of a delayed write is returned
// by the next one; an answer that broke off does not look whole; windows of HTTP/2 are
// kept.
//
// What a client may cost: it has as many streams at once as it was told, whoever serves them, and
// where short requests are not served, so many watches besides that go on; a stream keeps what the
// client does not take, a chunk of some 32 KB and as much again; a short request keeps its body
// and a piece of its answer; a connection keeps a table of headers for short requests, and the
// numbers of so many streams as it may open, four times over; frames that ask for nothing are
// read slowly (http2_limit.go); package http2 comes again to a connection that rests once a second at most. How many watches there may be is bounded by package filters.
package conns
