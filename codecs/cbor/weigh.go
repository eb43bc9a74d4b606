package cbor

import "encoding/binary"

// containers counts the objects and lists in data. It steps from head to head, whatever the nesting, and
// stops at invalid data.
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
		case info != 31: // 31 begins or ends an item of indefinite length, and has no value
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

// span returns how many bytes the first items of data take, of data that the encoder made: all
// lengths are stated, and nothing is missing.
func span(data []byte, items uint64) (at int) {
	for ; items > 0; items-- {
		major := data[at] >> 5
		value, head := itemHead(data[at:])
		at += head
		switch major {
		case 2, 3: // strings
			at += int(value)
		case 4:
			items += value
		case 5:
			items += 2 * value
		case 6: // a tag, and the tagged item
			items++
		}
	}
	return at
}

// itemHead reads the head of the first item of data that the encoder made: its count or length, and how long the head is.
func itemHead(data []byte) (value uint64, head int) {
	info := data[0] & 0x1f
	if info < 24 {
		return uint64(info), 1
	}
	size := 1 << (info - 24)
	var wide [8]byte
	copy(wide[8-size:], data[1:1+size])
	return binary.BigEndian.Uint64(wide[:]), 1 + size
}
