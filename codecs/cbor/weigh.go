package cbor

import "encoding/binary"

// containers counts the objects and lists in data. It steps from head to head, whatever
// is inside of what, and stops where data is no CBOR.
func containers(data []byte) (n int) {
	for len(data) > 0 {
		major, info := data[0]>>5, data[0]&0x1f
		data = data[1:]
		var value uint64
		switch {
		case info < 24:
			value = uint64(info)
		case info < 28:
			size := 1 << (info - 24)
			if len(data) < size {
				return n
			}
			var wide [8]byte
			copy(wide[8-size:], data[:size])
			value, data = binary.BigEndian.Uint64(wide[:]), data[size:]
		case info != 31: // 31 begins or ends what has no length, and has no value
			return n
		}
		switch major {
		case 2, 3: // strings
			if value > uint64(len(data)) {
				return n
			}
			data = data[value:]
		case 4, 5:
			n++
		}
	}
	return n
}
