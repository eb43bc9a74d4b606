package remote

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// sealing is what a Spool is written with: AES in counter mode, by a key that is in this
// process alone, so that nothing of what a folder for temporary files held, or the disk
// below it, can be read later. That it is not changed meanwhile is up to the file, which
// nobody else can open.
type sealing struct{ block cipher.Block }

func newSealing() (sealing, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return sealing{}, fmt.Errorf("a key for the file of the objects: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealing{}, fmt.Errorf("a key for the file of the objects: %w", err)
	}
	return sealing{block}, nil
}

// stream is one of the key's, from an offset in bytes on. Each is for one text: that of
// another number has nothing in common with it.
func (s sealing) stream(number uint64, offset int64) cipher.Stream {
	var counter, skipped [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[:], number)
	binary.BigEndian.PutUint64(counter[8:], uint64(offset/aes.BlockSize))
	stream := cipher.NewCTR(s.block, counter[:])
	before := skipped[:offset%aes.BlockSize]
	stream.XORKeyStream(before, before)
	return stream
}
