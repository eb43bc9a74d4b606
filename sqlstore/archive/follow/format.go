// Package follow keeps a folder of backups up to date with a database: bases, which are backups of package
// archive, and between them a log of every commit.
//
// Each commit is in the folder, on disk, within a second, as long as both are reachable. A process that is killed
// at any instant leaves a folder from which everything up to its last group of commits can be restored, and which
// the next process continues without a gap or a duplicate. A reader notices changed bytes, missing parts and parts
// in another order. If commits could not be followed in time, the folder has a gap, which is reported.
//
// docs/backup.md describes the files for authors of other readers.
//
// Goroutines: Follower.Run starts one while a base is taken, and waits for it.
package follow

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/rowlock/rowlock/sqlstore/archive"
)

const (
	formatName    = "rowlock-log"
	formatVersion = 1

	magic      = "RLF1"
	headSize   = 48
	longest    = 64 << 20 // most bytes of a frame, packed and unpacked
	maxRows    = 1 << 20  // of a frame
	longHeader = 4096     // more than the first line of a segment has
)

// Kinds of frames.
const (
	kindRows uint8 = 1 // commits
	kindSeen uint8 = 2 // there was nothing newer at a time
	kindEnd  uint8 = 3 // the segment is whole; nothing follows in it
)

// ErrDamaged: a file does not match its checksums. It is the error of package archive, because bases may be damaged, too.
var ErrDamaged = archive.ErrDamaged

// errTorn: a segment ends in the middle of a frame, as a writer that was killed leaves it.
var errTorn = errors.New("cut short")

// sum chains the parts of a log: each covers all that came before it.
type sum [sha256.Size]byte

func (s sum) then(parts ...[]byte) (next sum) {
	h := sha256.New()
	h.Write(s[:])
	for _, p := range parts {
		h.Write(p)
	}
	h.Sum(next[:0])
	return next
}

// segmentHeader is the first line of a segment, as JSON. Its SHA-256 follows it.
type segmentHeader struct {
	Format    string    `json:"format"`
	Version   int       `json:"version"`
	ClusterID string    `json:"clusterID"`
	Driver    string    `json:"driver"`   // of the database
	Run       int       `json:"run"`      // number of the run of revisions without a gap
	First     int64     `json:"first"`    // revision that comes first in it
	Previous  string    `json:"previous"` // last sum of the segment before it, as hex; empty: it begins a run
	Began     time.Time `json:"began"`
}

func (h segmentHeader) encode() ([]byte, sum, error) {
	h.Format, h.Version = formatName, formatVersion
	text, err := json.Marshal(h)
	if err != nil {
		return nil, sum{}, err
	}
	text = append(text, '\n')
	first := sum(sha256.Sum256(text))
	return append(text, first[:]...), first, nil
}

// decodeSegment reads the head of a segment from its first bytes: size of them are the head.
// Errors: errTorn, ErrDamaged.
func decodeSegment(data []byte) (h segmentHeader, first sum, size int, err error) {
	i := bytes.IndexByte(data, '\n')
	if i < 0 && len(data) < longHeader {
		return h, first, 0, errTorn
	}
	if i < 0 {
		return h, first, 0, fmt.Errorf("%w: it does not begin like a log", ErrDamaged)
	}
	size = i + 1 + len(first)
	if len(data) < size {
		return h, first, 0, errTorn
	}
	first = sha256.Sum256(data[:i+1])
	if !bytes.Equal(first[:], data[i+1:size]) {
		return h, first, 0, fmt.Errorf("%w: the checksum of its first line does not match", ErrDamaged)
	}
	if err := json.Unmarshal(data[:i], &h); err != nil || h.Format != formatName {
		return h, first, 0, fmt.Errorf("%w: it does not begin like a log", ErrDamaged)
	}
	if h.Version != formatVersion {
		return h, first, 0, fmt.Errorf("log format %d is not known to this version", h.Version)
	}
	if previous, err := hex.DecodeString(h.Previous); err != nil || len(previous) != 0 && len(previous) != len(first) || h.First <= 0 || h.Run <= 0 {
		return h, first, 0, fmt.Errorf("%w: its first line cannot be", ErrDamaged)
	}
	return h, first, size, nil
}

// frameHead is the beginning of a frame. Times are microseconds since 1970.
type frameHead struct {
	kind     uint8
	packed   uint32 // bytes that follow, before the sum
	size     uint32 // bytes of them unpacked
	count    uint32 // rows
	first    int64  // revision of the first row, or that would come next
	at       int64  // by when everything that was committed is in the log, with this frame
	earliest int64  // time at which a row of it was written: no row is older
}

func (h frameHead) encode() []byte {
	b := make([]byte, headSize)
	copy(b, magic)
	b[4] = h.kind
	order := binary.BigEndian
	order.PutUint32(b[8:], h.packed)
	order.PutUint32(b[12:], h.size)
	order.PutUint32(b[16:], h.count)
	order.PutUint64(b[20:], uint64(h.first))
	order.PutUint64(b[28:], uint64(h.at))
	order.PutUint64(b[36:], uint64(h.earliest))
	order.PutUint32(b[44:], crc32.Checksum(b[:44], castagnoli))
	return b
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// decodeHead reads the first headSize bytes of a frame. Errors: ErrDamaged.
func decodeHead(b []byte) (h frameHead, err error) {
	order := binary.BigEndian
	if string(b[:4]) != magic || order.Uint32(b[44:]) != crc32.Checksum(b[:44], castagnoli) {
		return h, fmt.Errorf("%w: no frame begins there", ErrDamaged)
	}
	h = frameHead{
		kind: b[4], packed: order.Uint32(b[8:]), size: order.Uint32(b[12:]), count: order.Uint32(b[16:]),
		first: int64(order.Uint64(b[20:])), at: int64(order.Uint64(b[28:])), earliest: int64(order.Uint64(b[36:])),
	}
	rows := h.kind == kindRows
	if rows != (h.count > 0) || rows != (h.packed > 0) || h.packed > longest || h.size > longest || h.count > maxRows || h.first <= 0 || h.kind == 0 || h.kind > kindEnd {
		return h, fmt.Errorf("%w: a frame cannot be so", ErrDamaged)
	}
	return h, nil
}

// last returns the newest revision with the frame.
func (h frameHead) last() int64 { return h.first + int64(h.count) - 1 }

// Names of files. Run and revision have fixed widths, so that names sort as their content.
const (
	basePrefix, baseSuffix = "base-", ".gz"
	logPrefix, logSuffix   = "log-", ".rlog"
	partialSuffix          = ".partial" // of a base that is not whole
	lockName               = "LOCK"
)

func fileName(prefix, suffix string, run int, revision int64) string {
	return fmt.Sprintf("%s%06d-%019d%s", prefix, run, revision, suffix)
}

// parseName is the other way round; ok is false for names of other files.
func parseName(name, prefix, suffix string) (run int, revision int64, ok bool) {
	text, begins := strings.CutPrefix(name, prefix)
	text, ends := strings.CutSuffix(text, suffix)
	if !begins || !ends {
		return 0, 0, false
	}
	n, err := fmt.Sscanf(text, "%d-%d", &run, &revision)
	return run, revision, err == nil && n == 2 && run > 0 && revision >= 0 && fileName(prefix, suffix, run, revision) == name
}

func micros(us int64) time.Time { return time.UnixMicro(us).UTC() }
