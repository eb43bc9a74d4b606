package main

import (
	"bytes"
	"strconv"
	"time"
)

// times finds the timestamps in received data, and keeps the beginning of an incomplete one.
func times(out []time.Duration, data, rest []byte) ([]time.Duration, []byte) {
	now := time.Now().UnixNano()
	for {
		i := bytes.Index(data, []byte(`"@`))
		if i < 0 {
			if len(data) > 0 && data[len(data)-1] == '"' {
				rest = append(rest, '"')
			}
			return out, rest
		}
		number, after, ok := bytes.Cut(data[i+2:], []byte("@"))
		if !ok {
			return out, append(rest, data[i:]...)
		}
		if sent, err := strconv.ParseInt(string(number), 10, 64); err == nil {
			out = append(out, time.Duration(now-sent))
		}
		data = after
	}
}
