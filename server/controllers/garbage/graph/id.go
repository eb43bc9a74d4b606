package graph

import (
	"crypto/sha256"
	"encoding/hex"
)

// ID represents a UID in less memory than its text.
type ID [16]byte

// IDOf returns the ID of a UID: its bytes if it has the usual form, otherwise the beginning of a hash. Two
// UIDs may have the same ID, so the caller compares the texts before it acts upon an object.
func IDOf(uid string) ID {
	var id ID
	if len(uid) == 36 && uid[8] == '-' && uid[13] == '-' && uid[18] == '-' && uid[23] == '-' {
		digits := make([]byte, 0, 32)
		digits = append(append(append(append(append(digits, uid[:8]...), uid[9:13]...), uid[14:18]...), uid[19:23]...), uid[24:]...)
		if _, err := hex.Decode(id[:], digits); err == nil && lower(digits) {
			return id
		}
	}
	sum := sha256.Sum256([]byte(uid))
	copy(id[:], sum[:])
	return id
}

func lower(digits []byte) bool {
	for _, d := range digits {
		if d >= 'A' && d <= 'F' {
			return false
		}
	}
	return true
}
