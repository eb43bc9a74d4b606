package kms

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of plugins' answers.
const (
	maxKeyID       = 1 << 10
	maxDataKey     = 1 << 10
	maxAnnotations = 32 << 10
)

// wrapped is a data key as the plugin encrypted it, with the data that the plugin needs to decrypt it. It is
// stored before each value that the key encrypted.
type wrapped struct {
	keyID       string
	dataKey     []byte
	annotations map[string][]byte
}

// invalidKeyID names the fault of a key id, in a word that metrics use too.
func invalidKeyID(id string) (string, error) {
	switch {
	case id == "":
		return "empty", errors.New("keyID is empty")
	case len(id) > maxKeyID:
		return "too_long", fmt.Errorf("keyID is %d bytes, which exceeds the max size of %d", len(id), maxKeyID)
	}
	return "ok", nil
}

func (w *wrapped) validate() error {
	switch {
	case len(w.dataKey) == 0:
		return errors.New("failed to validate encrypted DEK source: encrypted DEK source is empty")
	case len(w.dataKey) > maxDataKey:
		return fmt.Errorf("failed to validate encrypted DEK source: encrypted DEK source is %d bytes, which exceeds the max size of %d", len(w.dataKey), maxDataKey)
	}
	if _, err := invalidKeyID(w.keyID); err != nil {
		return fmt.Errorf("failed to validate key id: %w", err)
	}
	var errs []error
	size := 0
	for name, value := range w.annotations {
		if err := validation.IsFullyQualifiedDomainName(field.NewPath("annotations"), name); err != nil {
			errs = append(errs, errors.New(clip(err.ToAggregate().Error())))
		}
		size += len(name) + len(value)
	}
	if size > maxAnnotations {
		errs = append(errs, fmt.Errorf("total size of annotations is %d, which exceeds the max size of %d", size, maxAnnotations))
	}
	if len(errs) > 0 {
		return fmt.Errorf("failed to validate annotations: %w", utilerrors.NewAggregate(errs[:1]))
	}
	return nil
}

// append writes it, always in the same bytes.
func (w *wrapped) append(dst []byte) []byte {
	dst = appendBytes(dst, w.keyID)
	dst = appendBytes(dst, w.dataKey)
	dst = binary.AppendUvarint(dst, uint64(len(w.annotations)))
	for _, name := range slices.Sorted(maps.Keys(w.annotations)) {
		dst = appendBytes(dst, name)
		dst = appendBytes(dst, w.annotations[name])
	}
	return dst
}

func appendBytes[T string | []byte](dst []byte, value T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(value))), value...)
}

var errWire = errors.New("the stored bytes are not those of a KMS provider")

// skip returns the length of the wrapped data key at the start of some bytes. It allocates nothing.
func skip(b []byte) (int, error) {
	r := reader{rest: b}
	r.take(maxKeyID)
	r.take(maxDataKey)
	for n := r.number(maxAnnotations); n > 0 && !r.bad; n-- {
		r.take(maxAnnotations)
		r.take(maxAnnotations)
	}
	if r.bad {
		return 0, errWire
	}
	return len(b) - len(r.rest), nil
}

// unwrap decodes the bytes that skip measured.
func unwrap(b []byte) (*wrapped, error) {
	r := reader{rest: b}
	w := &wrapped{keyID: string(r.take(maxKeyID)), dataKey: slices.Clone(r.take(maxDataKey))}
	for n := r.number(maxAnnotations); n > 0 && !r.bad; n-- {
		if w.annotations == nil {
			w.annotations = map[string][]byte{}
		}
		name := string(r.take(maxAnnotations))
		w.annotations[name] = slices.Clone(r.take(maxAnnotations))
	}
	if r.bad || len(r.rest) > 0 {
		return nil, errWire
	}
	return w, w.validate()
}

// reader takes pieces off the front of bytes, until they are bad.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) number(most int) int {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > uint64(most) {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

func (r *reader) take(most int) []byte {
	n := r.number(most)
	if n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nil
	}
	piece := r.rest[:n]
	r.rest = r.rest[n:]
	return piece
}

// fingerprint distinguishes wrapped keys in less memory.
func fingerprint(b []byte) [sha256.Size]byte { return sha256.Sum256(b) }
