package v1alpha1

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is what encodes and decodes itself, as the generated types of k8s.io/api do.
type message interface {
	Size() int
	MarshalToSizedBuffer(data []byte) (int, error)
	Unmarshal(data []byte) error
}

// field is a field of a message: a message, or a text and what sets it.
type field struct {
	part message
	text string
	set  func(string)
}

func text[T ~string](p *T) field {
	return field{text: string(*p), set: func(s string) { *p = T(s) }}
}

func part(m message) field { return field{part: m} }

// size is the length of fields that are numbered from 1 on.
func size(fields ...field) (n int) {
	for i, f := range fields {
		n += protowire.SizeTag(protowire.Number(i + 1))
		if f.part != nil {
			n += protowire.SizeBytes(f.part.Size())
		} else {
			n += protowire.SizeBytes(len(f.text))
		}
	}
	return n
}

// marshal writes fields, numbered from first on, to the end of data. It returns their length.
func marshal(data []byte, first int, fields ...field) (int, error) {
	end := len(data)
	for i := len(fields) - 1; i >= 0; i-- {
		f, n := fields[i], 0
		if f.part != nil {
			var err error
			if n, err = f.part.MarshalToSizedBuffer(data[:end]); err != nil {
				return 0, err
			}
		} else {
			n = copy(data[end-len(f.text):end], f.text)
		}
		end -= n
		head := protowire.AppendVarint(protowire.AppendTag(nil, protowire.Number(first+i), protowire.BytesType), uint64(n))
		end -= len(head)
		copy(data[end:], head)
	}
	return len(data) - end, nil
}

// unmarshal reads a message whose fields, all of them of the type bytes, find gives by their
// numbers. Of a number that it does not know, nothing is kept.
func unmarshal(data []byte, name string, find func(number protowire.Number) (field, bool)) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return broken(name, protowire.ParseError(n))
		}
		data = data[n:]
		f, known := find(number)
		if !known {
			if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
				return broken(name, protowire.ParseError(n))
			}
			data = data[n:]
			continue
		}
		if kind != protowire.BytesType {
			return fmt.Errorf("proto: wrong wireType = %d for field %d of %s", kind, number, name)
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return broken(name, protowire.ParseError(n))
		}
		data = data[n:]
		if f.part == nil {
			f.set(string(value))
		} else if err := f.part.Unmarshal(value); err != nil {
			return err
		}
	}
	return nil
}

func whole(m message) ([]byte, error) {
	data := make([]byte, m.Size())
	n, err := m.MarshalToSizedBuffer(data)
	return data[len(data)-n:], err
}

func broken(name string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return fmt.Errorf("proto: %s: %w", name, err)
}

// numbered finds fields that are numbered from 1 on.
func numbered(fields ...field) func(protowire.Number) (field, bool) {
	return func(n protowire.Number) (field, bool) {
		if n < 1 || int(n) > len(fields) {
			return field{}, false
		}
		return fields[n-1], true
	}
}

func (m *StorageVersionMigration) fields() []field {
	return []field{part(&m.ObjectMeta), part(&m.Spec), part(&m.Status)}
}

// Size is the length of m as Protobuf.
func (m *StorageVersionMigration) Size() int { return size(m.fields()...) }

// Marshal is m as Protobuf.
func (m *StorageVersionMigration) Marshal() ([]byte, error) { return whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *StorageVersionMigration) MarshalToSizedBuffer(data []byte) (int, error) {
	return marshal(data, 1, m.fields()...)
}

// Unmarshal reads m from data.
func (m *StorageVersionMigration) Unmarshal(data []byte) error {
	return unmarshal(data, "StorageVersionMigration", numbered(m.fields()...))
}

func (s *StorageVersionMigrationSpec) fields() []field {
	return []field{part(&s.Resource), text(&s.ContinueToken)}
}

// Size is the length of s as Protobuf.
func (s *StorageVersionMigrationSpec) Size() int { return size(s.fields()...) }

// MarshalToSizedBuffer writes s to the end of data.
func (s *StorageVersionMigrationSpec) MarshalToSizedBuffer(data []byte) (int, error) {
	return marshal(data, 1, s.fields()...)
}

// Unmarshal reads s from data.
func (s *StorageVersionMigrationSpec) Unmarshal(data []byte) error {
	return unmarshal(data, "StorageVersionMigrationSpec", numbered(s.fields()...))
}

func (r *GroupVersionResource) fields() []field {
	return []field{text(&r.Group), text(&r.Version), text(&r.Resource)}
}

// Size is the length of r as Protobuf.
func (r *GroupVersionResource) Size() int { return size(r.fields()...) }

// MarshalToSizedBuffer writes r to the end of data.
func (r *GroupVersionResource) MarshalToSizedBuffer(data []byte) (int, error) {
	return marshal(data, 1, r.fields()...)
}

// Unmarshal reads r from data.
func (r *GroupVersionResource) Unmarshal(data []byte) error {
	return unmarshal(data, "GroupVersionResource", numbered(r.fields()...))
}

func (c *MigrationCondition) fields() []field {
	return []field{text(&c.Type), text(&c.Status), part(&c.LastUpdateTime), text(&c.Reason), text(&c.Message)}
}

// Size is the length of c as Protobuf.
func (c *MigrationCondition) Size() int { return size(c.fields()...) }

// MarshalToSizedBuffer writes c to the end of data.
func (c *MigrationCondition) MarshalToSizedBuffer(data []byte) (int, error) {
	return marshal(data, 1, c.fields()...)
}

// Unmarshal reads c from data.
func (c *MigrationCondition) Unmarshal(data []byte) error {
	return unmarshal(data, "MigrationCondition", numbered(c.fields()...))
}

// Size is the length of s as Protobuf.
func (s *StorageVersionMigrationStatus) Size() (n int) {
	for i := range s.Conditions {
		n += size(part(&s.Conditions[i]))
	}
	return n + protowire.SizeTag(2) + protowire.SizeBytes(len(s.ResourceVersion))
}

// MarshalToSizedBuffer writes s to the end of data.
func (s *StorageVersionMigrationStatus) MarshalToSizedBuffer(data []byte) (int, error) {
	end := len(data)
	n, err := marshal(data, 2, text(&s.ResourceVersion))
	for i := len(s.Conditions) - 1; err == nil && i >= 0; i-- {
		end -= n
		n, err = marshal(data[:end], 1, part(&s.Conditions[i]))
	}
	return len(data) - end + n, err
}

// Unmarshal reads s from data.
func (s *StorageVersionMigrationStatus) Unmarshal(data []byte) error {
	return unmarshal(data, "StorageVersionMigrationStatus", func(n protowire.Number) (field, bool) {
		if n == 1 {
			s.Conditions = append(s.Conditions, MigrationCondition{})
			return part(&s.Conditions[len(s.Conditions)-1]), true
		}
		return text(&s.ResourceVersion), n == 2
	})
}

// Size is the length of l as Protobuf.
func (l *StorageVersionMigrationList) Size() int {
	n := size(part(&l.ListMeta))
	for i := range l.Items {
		n += protowire.SizeTag(2) + protowire.SizeBytes(l.Items[i].Size())
	}
	return n
}

// Marshal is l as Protobuf.
func (l *StorageVersionMigrationList) Marshal() ([]byte, error) { return whole(l) }

// MarshalToSizedBuffer writes l to the end of data.
func (l *StorageVersionMigrationList) MarshalToSizedBuffer(data []byte) (int, error) {
	end := len(data)
	for i := len(l.Items) - 1; i >= 0; i-- {
		n, err := marshal(data[:end], 2, part(&l.Items[i]))
		if err != nil {
			return 0, err
		}
		end -= n
	}
	n, err := marshal(data[:end], 1, part(&l.ListMeta))
	return len(data) - end + n, err
}

// Unmarshal reads l from data.
func (l *StorageVersionMigrationList) Unmarshal(data []byte) error {
	return unmarshal(data, "StorageVersionMigrationList", func(n protowire.Number) (field, bool) {
		if n == 2 {
			l.Items = append(l.Items, StorageVersionMigration{})
			return part(&l.Items[len(l.Items)-1]), true
		}
		return part(&l.ListMeta), n == 1
	})
}
