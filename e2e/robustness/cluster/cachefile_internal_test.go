//go:build unix

package cluster

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// TestCachedResources: the resources of a cache file are those of its blocks, if there is a key for it. A file that is no cache file is an error.
func TestCachedResources(t *testing.T) {
	t.Parallel()
	key, name := [32]byte{1, 2, 3}, strings.Repeat("a", 32)
	keyOf := func(of string) ([32]byte, bool) { return key, of == name }
	file := func(name, directory string, sizes ...uint64) []byte {
		block, err := aes.NewCipher(key[:])
		if err != nil {
			t.Fatal(err)
		}
		sealer, err := cipher.NewGCM(block)
		if err != nil {
			t.Fatal(err)
		}
		head := []byte(cacheMagic + name)
		text := binary.AppendUvarint(nil, uint64(len(sizes)))
		for _, n := range sizes {
			text = binary.AppendUvarint(text, n)
		}
		text = append(text, directory...)
		at := uint64(len(head) + 1000) // behind the blocks
		data := append(slices.Clone(head), make([]byte, 1000)...)
		data = append(data, sealer.Seal(nil, cacheNonce(), text, head)...)
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(data, at), uint64(len(text)))
	}
	const directory = `{"Maker":"m","Resources":[{"Name":"configmaps"},{"Name":"leases"},{"Name":"secrets"}],"Blocks":[{"At":1,"Resource":0,"Objects":2},{"At":2,"Resource":2,"Objects":1}]}`
	names, err := cachedResources(file(name, directory, 123, 40_000), keyOf)
	if err != nil || !slices.Equal(names, []string{"configmaps", "secrets"}) {
		t.Errorf("the resources are %q, %v", names, err)
	}
	if names, err := cachedResources(file(strings.Repeat("b", 32), directory), keyOf); names != nil || err != nil {
		t.Errorf("those of a file without a key are %q, %v", names, err)
	}
	other := file(name, directory)
	other[len(other)-40]++
	for what, data := range map[string][]byte{
		"a short file": []byte(cacheMagic), "a damaged directory": other, "a directory with a block of no resource": file(name, `{"Blocks":[{"Resource":1}]}`), "no directory": file(name, ""),
	} {
		if names, err := cachedResources(data, keyOf); err == nil {
			t.Errorf("%s has the resources %q", what, names)
		}
	}
}
