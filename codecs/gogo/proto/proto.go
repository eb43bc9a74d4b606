// Package proto stands in for the library of that name below the API types of Kubernetes and the
// messages of its plug-ins. It has what their generated files and the serializer of apimachinery
// use, and reads and writes the same messages.
//
// A message is read and written by its own methods, which the API types have. For those
// that have none package google.golang.org/protobuf does it, which is linked anyway for gRPC.
//
// The library lists all messages by name when a program starts, and looks for four methods of each
// that do what others do as well. So a linker keeps every message with those methods, and the
// library's tables behind them, though nobody here asks for a message by its name.
//
// The replace line of rowlock's go.mod puts it in the library's place. Without the line the library is
// linked again, and everything works as before; a program that imports rowlock's packages has the library.
package proto

import (
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
)

// GoGoProtoPackageIsVersion3 is what generated files see that they fit by.
const GoGoProtoPackageIsVersion3 = true

// Message is what generated types are.
type Message interface {
	Reset()
	String() string
	ProtoMessage()
}

// Marshaler is a message that writes itself.
type Marshaler interface {
	Marshal() ([]byte, error)
}

// Unmarshaler is a message that reads itself. What it had before stays where nothing is read over it.
type Unmarshaler interface {
	Unmarshal([]byte) error
}

// Sizer is a message that knows how long it is.
type Sizer interface {
	Size() int
}

// Marshal writes a message.
func Marshal(m Message) ([]byte, error) {
	if own, ok := m.(Marshaler); ok {
		return own.Marshal()
	}
	return proto.Marshal(protoadapt.MessageV2Of(m))
}

// Unmarshal reads a message into an empty one.
func Unmarshal(b []byte, m Message) error {
	m.Reset()
	if own, ok := m.(Unmarshaler); ok {
		return own.Unmarshal(b)
	}
	return proto.Unmarshal(b, protoadapt.MessageV2Of(m))
}

// CompactTextString is a message as text on one line, for people.
func CompactTextString(m Message) string {
	return prototext.MarshalOptions{AllowPartial: true}.Format(protoadapt.MessageV2Of(m))
}

// RegisterType would make a message known by its name. Nobody asks for it.
func RegisterType(Message, string) {}

// RegisterMapType would make a map known by the name of its entries. Nobody asks for it.
func RegisterMapType(any, string) {}

// RegisterFile would make a description known by the name of its file. Nobody asks for it.
func RegisterFile(string, []byte) {}
