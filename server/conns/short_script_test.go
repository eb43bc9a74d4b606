package conns_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// step is what a client sends at once.
type step struct {
	what    string
	bytes   []byte
	stream  uint32 // that may have its answer afterwards; 0: none
	unended bool   // headers go on in the next step
}

// script makes steps of bytes that a fuzzer chooses: requests in all forms, well-formed and not.
type script struct {
	source []byte
	steps  []step
	next   uint32
	used   []uint32 // streams that were begun
	head   bytes.Buffer
	enc    *hpack.Encoder
	ended  bool // nothing is asked any more
}

const scriptSteps = 40

// scriptOf is never longer than some steps.
func scriptOf(source []byte) []step {
	s := &script{source: source, next: 3}
	s.enc = hpack.NewEncoder(&s.head)
	for len(s.source) > 0 && len(s.steps) < scriptSteps && !s.ended {
		s.choose()
	}
	return s.steps
}

// of is a number below n that the fuzzer chooses.
func (s *script) of(n int) int {
	if len(s.source) == 0 {
		return 0
	}
	b := s.source[0]
	s.source = s.source[1:]
	return int(b) % n
}

func pick[T any](s *script, from ...T) T { return from[s.of(len(from))] }

// odd says now and then that something is not as it is as a rule.
func (s *script) odd() bool { return s.of(64) == 63 }

func (s *script) choose() {
	what := s.of(32)
	if what < 20 {
		s.request()
		return
	}
	switch what - 16 {
	case 4, 5, 6, 7:
		s.data(s.stream(), pick(s, 0, 1, 4, 100, 5000, 20000), s.of(3) == 0)
	case 8:
		s.frame("reset", 3, 0, s.stream(), binary.BigEndian.AppendUint32(nil, 8))
	case 9:
		id := pick(s, 0, s.stream())
		s.frame("update", 8, 0, id, binary.BigEndian.AppendUint32(nil, pick[uint32](s, 1, 1000, 70_000, 3_000_000, 1, 1000, 70_000, 3_000_000, 0, 1<<31-1)))
		s.steps[len(s.steps)-1].stream = id
	case 10:
		s.settings()
	case 11:
		id := s.stream()
		s.frame("priority", 2, 0, id, append(binary.BigEndian.AppendUint32(nil, pick(s, 0, id, id+2)), 7))
	case 12:
		s.trailers()
	case 13:
		s.frame("unknown", byte(20+s.of(5)), byte(s.of(256)), s.stream(), make([]byte, s.of(64)))
	case 14:
		if s.of(4) > 0 {
			return
		}
		n := s.of(32)
		payload := append(slices.Clone(s.source[:min(n, len(s.source))]), make([]byte, max(0, n-len(s.source)))...)
		s.frame("raw", byte(s.of(12)), byte(s.of(64)), pick(s, s.stream(), 0, s.next), payload)
	default:
		if s.ended = s.of(8) == 0; s.ended {
			s.frame("goaway", 7, 0, 0, make([]byte, 8))
		}
	}
}

// stream is one that was begun, as a rule.
func (s *script) stream() uint32 {
	if len(s.used) == 0 || s.of(64) == 63 {
		return pick(s, s.next, 1, 2, s.next+6)
	}
	return s.used[len(s.used)-1-s.of(min(3, len(s.used)))]
}

func (s *script) frame(what string, kind, flags byte, id uint32, payload []byte) {
	n := len(payload)
	b := binary.BigEndian.AppendUint32([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}, id)
	unended := (kind == 1 || kind == 9) && flags&4 == 0
	s.steps = append(s.steps, step{what: fmt.Sprintf("%s %d of %d, flags %x", what, id, n, flags), bytes: append(b, payload...), stream: id, unended: unended})
}

func (s *script) data(id uint32, size int, end bool) {
	var flags byte
	if end {
		flags = 1
	}
	payload := bytes.Repeat([]byte{'d'}, size)
	if s.of(6) == 5 {
		pad := s.of(256)
		flags |= 8
		payload = append(append([]byte{byte(pad)}, payload...), make([]byte, pick(s, pad, pad, pad, pad, pad, pad, pad, 0))...)
	}
	s.frame("data", 0, flags, id, payload)
}

func (s *script) settings() {
	id, value := pick[uint16](s, 4, 4, 4, 1, 3, 99), pick[uint32](s, 70_000, 0, 1, 1<<20, 1<<30, 100, 4096, 1<<14)
	if s.odd() {
		id, value = pick[uint16](s, 4, 5, 2), pick[uint32](s, 1<<31-1, 1<<31)
	}
	s.frame(fmt.Sprintf("setting %d=%d", id, value), 4, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, id), value))
	for _, used := range s.used {
		s.steps[len(s.steps)-1].stream = used
	}
}

func (s *script) field(name, value string) {
	_ = s.enc.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: s.of(4) == 0})
}

// request begins a stream, and sends its body or a part of it.
func (s *script) request() {
	id := s.next
	if s.odd() {
		id = pick(s, s.stream(), s.next+1, s.next+6)
	}
	if s.odd() {
		s.enc.SetMaxDynamicTableSize(pick[uint32](s, 0, 100, 4096))
	}
	method, scheme, host := pick(s, "GET", "POST", "PUT", "DELETE", "PATCH"), "https", "host"
	path := pick(s, "/echo", "/echo?x=1", "/large", "/none", "/pieces", "/boom", "/passed", "/trailers")
	switch {
	case s.odd():
		method = pick(s, "HEAD", "OPTIONS", "CONNECT", "get", "")
	case s.odd():
		scheme = pick(s, "http", "ftp", "")
	case s.odd():
		host = pick(s, "a@host", "ho\nst", "")
	case s.odd():
		path = pick(s, "echo", "https://host/echo", "/%zz", "/a b", "*", "", "//echo", "/echo#x")
	}
	pseudo := [][2]string{{":method", method}, {":scheme", scheme}, {":authority", host}, {":path", path}}
	if s.odd() {
		switch s.of(5) {
		case 0:
			pseudo = pseudo[:3]
		case 1:
			pseudo = append(pseudo, pseudo[s.of(4)])
		case 2:
			pseudo[0], pseudo[3] = pseudo[3], pseudo[0]
		case 3:
			pseudo = append([][2]string{{"x-before", "1"}}, pseudo...)
		case 4:
			pseudo = append(pseudo, [2]string{":protocol", "websocket"})
		}
	}
	for _, f := range pseudo {
		s.field(f[0], f[1])
	}
	s.field("x-say", pick(s, "a", "b", "something that is longer than the others"))
	size, whole := 0, true
	if method != "GET" && method != "HEAD" {
		size, whole = pick(s, 0, 1, 100, 5000, 66_000), s.of(4) > 0
	}
	switch {
	case s.odd():
		s.field("content-length", strconv.Itoa(size+pick(s, 1, -1, 1000)))
	case s.odd():
		s.field("content-length", strconv.Itoa(size))
		s.field("content-length", strconv.Itoa(size))
	case s.odd():
		s.field("content-length", pick(s, "-1", "x", "", "00"))
	case s.odd():
	case size > 0 || s.of(2) == 0:
		s.field("content-length", strconv.Itoa(size))
	}
	if s.of(4) == 3 {
		s.more()
	}
	s.block(id, size == 0 && whole)
	if id >= s.next {
		s.next = id + 2
	}
	s.used = append(s.used, id)
	for size > 0 {
		n := min(size, pick(s, 1<<14, 1<<14, 3000))
		size -= n
		s.data(id, n, size == 0 && whole)
	}
}

// more adds fields that are not plain.
func (s *script) more() {
	switch s.of(13) {
	case 0:
		s.field("cookie", "a=b")
		s.field("cookie", "c=d")
	case 1:
		s.field("te", pick(s, "trailers", "gzip"))
	case 2:
		s.field("X-Upper", "1")
	case 3:
		s.field(pick(s, "connection", "keep-alive", "upgrade", "transfer-encoding", "proxy-connection"), "x")
	case 4:
		s.field("x-broken", "a\nb")
	case 5:
		s.field("x-large", strings.Repeat("x", 20_000))
	case 6:
		for i := range 100 {
			s.field("x-many", strconv.Itoa(i))
		}
	case 7:
		s.field("expect", "100-continue")
	case 8:
		s.field("priority", "u=1")
	case 9:
		s.field("host", "other")
	case 10:
		s.field("trailer", "x-sum")
	case 11:
		s.field(pick(s, "", "a b", ":late", "x\x00"), "1")
	case 12:
		s.head.Write(pick(s, []byte{0x80}, []byte{0xff, 0xff}, []byte{0x40}, []byte{0x3f, 0xe1, 0x7f}, []byte{0x20}, []byte{0x00, 0x01}))
	}
}

// block sends the fields that were collected.
func (s *script) block(id uint32, end bool) {
	block := slices.Clone(s.head.Bytes())
	s.head.Reset()
	flags := byte(0)
	if end {
		flags = 1
	}
	var before, behind []byte
	switch s.of(24) {
	case 0:
		flags |= 8
		behind = make([]byte, s.of(256))
		before = []byte{byte(len(behind))}
	case 1:
		flags |= 32
		before = append(binary.BigEndian.AppendUint32(nil, pick(s, 0, id, 1)), 9)
	case 2:
		flags |= 8
		before = []byte{255} // which may be more than there is
	}
	parts := 1
	if s.of(6) == 0 {
		parts = 1 + s.of(4)
	}
	kind := byte(1)
	for i := range parts {
		n := len(block)
		if i < parts-1 {
			n = s.of(len(block) + 1)
		} else {
			flags |= 4
		}
		payload := append(slices.Clone(before), block[:n]...)
		s.frame("headers", kind, flags, id, append(payload, behind...))
		kind, flags, before, behind, block = 9, 0, nil, nil, block[n:]
	}
}

// trailers end a body, if there is one.
func (s *script) trailers() {
	s.field(pick(s, "x-sum", "x-sum", "x-sum", ":path", "X-Sum"), pick(s, "1", "1", "\n"))
	s.block(s.stream(), s.of(6) > 0)
}

// setup is what each client sends first.
func setup() []byte {
	var out bytes.Buffer
	out.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&out, nil)
	_ = framer.WriteSettings()
	_ = framer.WriteSettingsAck()
	_ = framer.WriteWindowUpdate(0, 8<<20)
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	enc.SetMaxDynamicTableSize(0) // the table is the script's
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/passed"}} {
		_ = enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true})
	}
	block := append(head.Bytes(), 0x3f, 0xe1, 0x1f) // so large again as it was
	block = append([]byte{0x20, 0x3f, 0xe1, 0x1f}, bytes.TrimPrefix(block[:len(block)-3], []byte{0x20})...)
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndStream: true, EndHeaders: true})
	return out.Bytes()
}
