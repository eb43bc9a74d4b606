package program

import (
	"crypto/sha256"
	"fmt"
)

// ServerID identifies a server in metrics by a hash.
func ServerID(address string) string {
	sum := sha256.Sum256([]byte(address))
	return fmt.Sprintf("sha256:%x", sum)
}
