package budget

import "fmt"

// The sizes that the largest object may have, in bytes of JSON.
const (
	DefaultObject = 3 << 19 // that of a stock server, and the minimum
	MostObject    = 32 << 20
)

// Sizes are the bounds that depend on the maximum size of an object. The zero value has those of
// DefaultObject.
type Sizes struct{ more int64 } // bytes that the largest object may have above DefaultObject

// SizesOf returns the bounds for objects of at most that many bytes; 0 is DefaultObject.
func SizesOf(object int64) (Sizes, error) {
	if object == 0 {
		object = DefaultObject
	}
	if object < DefaultObject || object > MostObject {
		return Sizes{}, fmt.Errorf("%d: use %d to %d bytes", object, DefaultObject, MostObject)
	}
	return Sizes{object - DefaultObject}, nil
}

// MostSizes returns the bounds for objects of MostObject bytes.
func MostSizes() Sizes { return Sizes{MostObject - DefaultObject} }

// Object returns the size of the largest object, as JSON without its resourceVersion.
func (s Sizes) Object() int64 { return DefaultObject + s.more }

// Body returns how many bytes a body may have: twice the largest object, as in a stock server.
func (s Sizes) Body() int64 { return bodyOf(s.Object()) }

func bodyOf(object int64) int64 { return 2 * object }

// DefaultBody is Body for DefaultObject.
const DefaultBody = 2 * DefaultObject

// Share bounds the memory, in bytes, of one user's bodies and of large objects that are processed for it.
func (s Sizes) Share() int64 {
	return max(leastShare, MemoryOf(int(s.Object()))+Copies(int(s.Object()))+Decoded(int(s.Object())))
}

// AllUsers is Share for all users.
func (s Sizes) AllUsers() int64 { return 2 * s.Share() }

// Bodies returns how many bytes the large bodies of all users may have together.
func (s Sizes) Bodies() int64 { return 4 * s.Body() }

// Answers returns how many bytes the answers with large objects that are under way may take: as many as three users.
func (s Sizes) Answers() int64 { return 3 * s.UserAnswers() }

// UserAnswers returns Answers for one user: the largest object in another form takes all of it. Answers wait for
// conversion webhooks and for slow clients, so two users must not be able to take all room.
func (s Sizes) UserAnswers() int64 { return 8 * s.Object() }

// Events returns how many bytes the recent events of a resource may have: sixteen objects of DefaultObject, or four larger ones.
func (s Sizes) Events() int { return int(max(16*DefaultObject, 4*s.Object())) }

// SlowEvents returns how many bytes of older events slow watches may keep in memory.
func (s Sizes) SlowEvents() int { return int(64<<20 + 2*s.more) }

// Answer returns how many bytes a webhook may answer with: an object, in a patch as base64.
func (s Sizes) Answer() int64 { return 8<<20 + 2*s.more }

// Recorded returns how many bytes an object in an audit event may have.
func (s Sizes) Recorded() int64 { return 4<<20 + s.more }

// Large reports whether an object or a body of n bytes exceeds the default: its bytes count, in addition to
// the values that are made of it.
func Large(n int) bool { return n > DefaultBody }

// Copies returns the bytes for all copies of a large body or object: received, decoded, encoded, stored.
func Copies(n int) int64 {
	if !Large(n) {
		return 0
	}
	return 4 * int64(n)
}

// Decoded bounds the memory of decoding and encoding a large object whose values were not counted.
func Decoded(n int) int64 { return 2 * Copies(n) }

// above returns how many of n bytes are above DefaultBody.
func above(n int) int64 { return max(0, int64(n)-DefaultBody) }
