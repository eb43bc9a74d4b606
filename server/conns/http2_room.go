package conns

import "net/http"

// roomSize is how many bytes of stack a request that may write is given at once. What such
// a request needs is less than twice as much; with the rest of a frame this makes a stack of
// 16 KB, the largest that the runtime keeps at hand for each processor.
const roomSize = 9 << 10

// roomy gives the goroutine of a request its stack while there is nothing on it. Package
// http2 starts a goroutine for each request, with as little stack as the runtime thinks
// goroutines need, most of which do nothing. On its way through the filters to a decoder it
// grew two or three times, and each time all frames below were copied and their pointers
// adjusted: a twelfth of the time of a small write. Reads, and with them watches, which
// keep what they have for long, are left alone.
func roomy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			makeRoom(len(r.Method))
		}
		next.ServeHTTP(w, r)
	})
}

// makeRoom has a large frame, which the stack is grown for before it begins. at is any
// place in it.
//
//go:noinline
func makeRoom(at int) byte {
	var room [roomSize]byte
	return room[at%roomSize]
}
