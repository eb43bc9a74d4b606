package conns

import (
	"net/http"
	"strings"
)

// How many bytes of stack a request is given at once. What most writes need is less than twice
// roomSize; with the rest of a frame this makes a stack of 16 KB, the largest that the runtime keeps
// at hand for each processor. An apply goes through the text, the object and the plan of its fields
// together and needs 17 to 20 KB where a Pod's template nests.
const (
	roomSize      = 9 << 10
	applyRoomSize = 17 << 10
)

// roomy gives the goroutine of a request its stack while there is nothing on it. Package
// http2 starts a goroutine for each request, with as little stack as the runtime thinks
// goroutines need, most of which do nothing. On its way through the filters to a decoder it
// grew two or three times, and each time all frames below were copied and their pointers
// adjusted: a twelfth of the time of a small write. Reads, and with them watches, which
// keep what they have for long, are left alone.
func roomy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			makeRoomFor(r)
		}
		next.ServeHTTP(w, r)
	})
}

// makeRoomFor makes as much room as a request needs. Whoever sends a request has it, also while that waits to be
// authenticated, or for a seat.
func makeRoomFor(r *http.Request) {
	if r.Method == http.MethodPatch {
		if types := r.Header["Content-Type"]; len(types) == 1 && strings.HasPrefix(types[0], "application/apply-patch") {
			makeApplyRoom(len(r.Method))
			return
		}
	}
	makeRoom(len(r.Method))
}

// makeRoom has a large frame, which the stack is grown for before it begins. at is a place in it, or
// behind it: what is in the frame is set to nothing only if somebody looks.
//
//go:noinline
func makeRoom(at int) byte {
	if at >= 0 {
		return 0
	}
	var room [roomSize]byte
	return room[-at%roomSize]
}

// makeApplyRoom is makeRoom for an apply.
//
//go:noinline
func makeApplyRoom(at int) byte {
	if at >= 0 {
		return 0
	}
	var room [applyRoomSize]byte
	return room[-at%applyRoomSize]
}
