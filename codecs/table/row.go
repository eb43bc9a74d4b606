package table

import (
	"bytes"
	"encoding/binary"
	stdjson "encoding/json"
	"strconv"
	"strings"
	"time"
)

// Mark returns a placeholder for the age of t in a cell's text. It has a meaning only in Cells.
func Mark(t time.Time) string {
	return "\x00" + strconv.FormatInt(t.UnixNano(), 10) + "\x00"
}

// Row is the encoded cells of one object with a hole for every age. In it a hole
// is a zero byte, which encoded text never has, and eight bytes of time.
type Row []byte

const holeSize = 1 + 8

// Cells encodes the cells of one object. Strings may hold Marks.
func Cells(cells []any) (Row, error) {
	row := make(Row, 1, 16*len(cells)+2)
	row[0] = '['
	for i, cell := range cells {
		if i > 0 {
			row = append(row, ',')
		}
		text, isText := cell.(string)
		if isText && strings.IndexByte(text, 0) >= 0 {
			row = appendMarked(row, text)
			continue
		}
		encoded, err := stdjson.Marshal(cell)
		if err != nil {
			return nil, err
		}
		row = append(row, encoded...)
	}
	return append(row, ']'), nil
}

// appendMarked encodes a text with marks; text that only resembles one stays.
func appendMarked(row Row, text string) Row {
	row = append(row, '"')
	for {
		before, rest, found := strings.Cut(text, "\x00")
		if !found {
			return append(appendText(row, text), '"')
		}
		digits, after, closed := strings.Cut(rest, "\x00")
		nanos, err := strconv.ParseInt(digits, 10, 64)
		if !closed || err != nil {
			row = appendText(row, text[:len(before)+1])
			text = rest
			continue
		}
		row = append(appendText(row, before), 0)
		row = binary.BigEndian.AppendUint64(row, uint64(nanos))
		text = after
	}
}

// appendText encodes text without its quotes.
func appendText(row []byte, text string) []byte {
	encoded, _ := stdjson.Marshal(text) // strings always encode
	return append(row, encoded[1:len(encoded)-1]...)
}

// AppendCells appends the cells as they are at a time.
func (r Row) AppendCells(dst []byte, now time.Time) []byte {
	for {
		hole := bytes.IndexByte(r, 0)
		if hole < 0 || hole+holeSize > len(r) {
			return append(dst, r...)
		}
		dst = append(dst, r[:hole]...)
		since := time.Unix(0, int64(binary.BigEndian.Uint64(r[hole+1:])))
		if age := now.Sub(since); age < -time.Second {
			dst = appendText(dst, string(AppendAge(nil, age))) // it needs escaping
		} else {
			dst = AppendAge(dst, age)
		}
		r = r[hole+holeSize:]
	}
}

// Append appends a whole row. conditions are encoded, nil for none; object appends the requested part of the
// object, nil for none.
func (r Row) Append(dst []byte, now time.Time, conditions []byte, object func(dst []byte) ([]byte, error)) ([]byte, error) {
	dst = append(dst, `{"cells":`...)
	dst = r.AppendCells(dst, now)
	if conditions != nil {
		dst = append(dst, `,"conditions":`...)
		dst = append(dst, conditions...)
	}
	dst = append(dst, `,"object":`...)
	if object == nil {
		return append(dst, "null}"...), nil
	}
	dst, err := object(dst)
	return append(dst, '}'), err
}

// AppendAge words a duration as tables do: two units at most, fewer the longer it is.
func AppendAge(dst []byte, d time.Duration) []byte {
	seconds := int64(d / time.Second)
	minutes, hours := seconds/60, seconds/3600
	days, years := hours/24, hours/24/365
	switch {
	case seconds < -1:
		return append(dst, "<invalid>"...)
	case seconds < 0:
		return append(dst, "0s"...)
	case seconds < 2*60:
		return units(dst, seconds, 's', 0, 0)
	case minutes < 10:
		return units(dst, minutes, 'm', seconds%60, 's')
	case minutes < 3*60:
		return units(dst, minutes, 'm', 0, 0)
	case hours < 8:
		return units(dst, hours, 'h', minutes%60, 'm')
	case hours < 2*24:
		return units(dst, hours, 'h', 0, 0)
	case hours < 8*24:
		return units(dst, days, 'd', hours%24, 'h')
	case hours < 2*365*24:
		return units(dst, days, 'd', 0, 0)
	case hours < 8*365*24:
		return units(dst, years, 'y', days%365, 'd')
	}
	return units(dst, years, 'y', 0, 0)
}

func units(dst []byte, n int64, unit byte, rest int64, restUnit byte) []byte {
	dst = append(strconv.AppendInt(dst, n, 10), unit)
	if rest > 0 {
		dst = append(strconv.AppendInt(dst, rest, 10), restUnit)
	}
	return dst
}
