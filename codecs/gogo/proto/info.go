package proto

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
)

// InternalMessageInfo goes with each type of messages. What it can do is what generated methods
// with names that begin with XXX do.
type InternalMessageInfo struct{}

// Marshal appends a message.
func (*InternalMessageInfo) Marshal(b []byte, m Message, deterministic bool) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: deterministic}.MarshalAppend(b, protoadapt.MessageV2Of(m))
}

// Unmarshal reads a message over what is there.
func (*InternalMessageInfo) Unmarshal(m Message, b []byte) error {
	return proto.UnmarshalOptions{Merge: true}.Unmarshal(b, protoadapt.MessageV2Of(m))
}

// Size is how many bytes Marshal appends.
func (*InternalMessageInfo) Size(m Message) int { return proto.Size(protoadapt.MessageV2Of(m)) }

// Merge puts one message over another of its type.
func (*InternalMessageInfo) Merge(to, from Message) {
	proto.Merge(protoadapt.MessageV2Of(to), protoadapt.MessageV2Of(from))
}

// DiscardUnknown drops the fields of a message that its type does not have.
func (*InternalMessageInfo) DiscardUnknown(m Message) {
	protoadapt.MessageV2Of(m).ProtoReflect().SetUnknown(nil)
}
