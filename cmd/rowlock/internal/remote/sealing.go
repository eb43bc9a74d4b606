package remote

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// sealing encrypts a Spool: AES in counter mode, with a key that only this process has. Objects cannot be
// read from the temporary file, or from the disk later. It does not detect changes: other users cannot open the file.
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

// stream returns a key stream from an offset in bytes on. Each number is used for one text.
func (s sealing) stream(number uint64, offset int64) cipher.Stream {
	var counter, skipped [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[:], number)
	binary.BigEndian.PutUint64(counter[8:], uint64(offset/aes.BlockSize))
	stream := cipher.NewCTR(s.block, counter[:])
	before := skipped[:offset%aes.BlockSize]
	stream.XORKeyStream(before, before)
	return stream
}
