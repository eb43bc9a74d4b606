//go:build unix

package traffic

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const cborType = "application/cbor"

// startEncoded runs watches in CBOR, of built-in and of custom resources, and watches of each version of objects that a webhook converts.
func (t *Traffic) startEncoded() {
	all := []*watcher{
		{scope: history.Scope{Resource: configMaps.resource, Namespace: Namespaces[0]}, selector: history.Selector{On: true}},
		{scope: history.Scope{Resource: widgets.resource, Namespace: Namespaces[1]}, streams: true},
	}
	for n, k := range shiftVersions {
		all = append(all, &watcher{scope: shiftScope, served: k, streams: n == 0}, &watcher{scope: shiftScope, served: k, selector: history.Selector{On: n == 0, Off: n == 1}})
	}
	for n, w := range all {
		w.client = t.client(fmt.Sprintf("encoded-watch-%d", n), protocols[n%2], false)
		if n < 2 {
			w.client.form = history.CBOR
		}
		t.readers.Go(w.run)
	}
}

// fromCBOR returns a data item as JSON.
func fromCBOR(data []byte) ([]byte, error) {
	var tree any
	if err := direct.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

// toCBOR returns JSON as a data item.
func toCBOR(text string) (string, error) {
	var tree any
	if err := utiljson.Unmarshal([]byte(text), &tree); err != nil {
		return "", err
	}
	data, err := direct.Marshal(tree)
	return string(data), err
}

// cborLine reads an event of a watch in CBOR, and returns it as JSON has it.
func cborLine(r *bufio.Reader) ([]byte, error) {
	data, err := cborItem(r, nil, 0)
	if err != nil && !errors.Is(err, errNoItem) {
		return data, err
	}
	var line []byte
	if err == nil {
		line, err = fromCBOR(data)
	}
	if err != nil {
		return fmt.Appendf(nil, `{"type":%q}`, err.Error()), nil
	}
	return line, nil
}

var errNoItem = errors.New("what was sent is no data item of a definite length")

// mostNested bounds the depth of a data item.
const mostNested = 64

// cborItem appends the next data item of a sequence. The error is io.EOF only before its first byte.
func cborItem(r *bufio.Reader, dst []byte, depth int) ([]byte, error) {
	take := func(n uint64) error {
		if n > mostFrame {
			return errNoItem
		}
		at := len(dst)
		dst = append(dst, make([]byte, n)...)
		got, err := io.ReadFull(r, dst[at:])
		dst = dst[:at+got]
		if errors.Is(err, io.EOF) && (at > 0 || depth > 0) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	at := len(dst)
	if err := take(1); err != nil {
		return dst, err
	}
	major, info := dst[at]>>5, dst[at]&0x1f
	n := uint64(info)
	if info > 27 || depth > mostNested {
		return dst, errNoItem
	}
	if info > 23 {
		size := 1 << (info - 24)
		if err := take(uint64(size)); err != nil {
			return dst, err
		}
		var word [8]byte
		copy(word[8-size:], dst[at+1:])
		n = binary.BigEndian.Uint64(word[:])
	}
	items := uint64(0)
	switch major {
	case 2, 3:
		err := take(n)
		return dst, err
	case 4:
		items = n
	case 5:
		items = 2 * n
	case 6:
		items = 1
	}
	for range items {
		var err error
		if dst, err = cborItem(r, dst, depth+1); err != nil {
			return dst, err
		}
	}
	return dst, nil
}
