package v1alpha1

import "github.com/rowlock/rowlock/server/removed/wire"

func (m *StorageVersionMigration) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ObjectMeta), wire.Part(2, &m.Spec), wire.Part(3, &m.Status)}
}

// Size is the length of m as Protobuf.
func (m *StorageVersionMigration) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *StorageVersionMigration) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *StorageVersionMigration) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *StorageVersionMigration) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "StorageVersionMigration", m.fields())
}

func (s *StorageVersionMigrationSpec) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &s.Resource), wire.String(2, &s.ContinueToken)}
}

// Size is the length of s as Protobuf.
func (s *StorageVersionMigrationSpec) Size() int { return wire.Size(s.fields()) }

// MarshalToSizedBuffer writes s to the end of data.
func (s *StorageVersionMigrationSpec) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, s.fields())
}

// Unmarshal reads s from data.
func (s *StorageVersionMigrationSpec) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "StorageVersionMigrationSpec", s.fields())
}

func (r *GroupVersionResource) fields() []wire.Field {
	return []wire.Field{wire.String(1, &r.Group), wire.String(2, &r.Version), wire.String(3, &r.Resource)}
}

// Size is the length of r as Protobuf.
func (r *GroupVersionResource) Size() int { return wire.Size(r.fields()) }

// MarshalToSizedBuffer writes r to the end of data.
func (r *GroupVersionResource) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, r.fields())
}

// Unmarshal reads r from data.
func (r *GroupVersionResource) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "GroupVersionResource", r.fields())
}

func (c *MigrationCondition) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &c.Type), wire.String(2, &c.Status), wire.Part(3, &c.LastUpdateTime), wire.String(4, &c.Reason), wire.String(5, &c.Message),
	}
}

// Size is the length of c as Protobuf.
func (c *MigrationCondition) Size() int { return wire.Size(c.fields()) }

// MarshalToSizedBuffer writes c to the end of data.
func (c *MigrationCondition) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, c.fields())
}

// Unmarshal reads c from data.
func (c *MigrationCondition) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "MigrationCondition", c.fields())
}

func (s *StorageVersionMigrationStatus) fields() []wire.Field {
	return []wire.Field{wire.Parts(1, &s.Conditions), wire.String(2, &s.ResourceVersion)}
}

// Size is the length of s as Protobuf.
func (s *StorageVersionMigrationStatus) Size() int { return wire.Size(s.fields()) }

// MarshalToSizedBuffer writes s to the end of data.
func (s *StorageVersionMigrationStatus) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, s.fields())
}

// Unmarshal reads s from data.
func (s *StorageVersionMigrationStatus) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "StorageVersionMigrationStatus", s.fields())
}

func (l *StorageVersionMigrationList) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &l.ListMeta), wire.Parts(2, &l.Items)}
}

// Size is the length of l as Protobuf.
func (l *StorageVersionMigrationList) Size() int { return wire.Size(l.fields()) }

// Marshal is l as Protobuf.
func (l *StorageVersionMigrationList) Marshal() ([]byte, error) { return wire.Whole(l) }

// MarshalToSizedBuffer writes l to the end of data.
func (l *StorageVersionMigrationList) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, l.fields())
}

// Unmarshal reads l from data.
func (l *StorageVersionMigrationList) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "StorageVersionMigrationList", l.fields())
}
